"""Reads a JSON schema keyword by keyword, and writes one that llguidance keeps to the letter."""

from typing import Any
from urllib.parse import unquote

from mtplx_engine.chat.json_schema import leaves
from mtplx_engine.chat.json_schema.disjoint import Disjointness
from mtplx_engine.chat.json_schema.finite import without_endless
from mtplx_engine.chat.json_schema.keywords import check_keywords, draft_of
from mtplx_engine.chat.json_schema.numbers import Numbers
from mtplx_engine.chat.json_schema.objects import check_names, required_names, settle_counts
from mtplx_engine.chat.json_schema.place import Place, check_json
from mtplx_engine.chat.json_schema.probe import probe
from mtplx_engine.chat.json_schema.reach import check_reach

Schema = dict[str, Any] | bool
# Of one schema: names of properties, and what is in literals. Making a grammar takes a second for
# every few thousand, and its stack ends at some ten thousand names in one object.
_MOST_MEMBERS = 20_000
_IN_PLACE = ("const", "enum", "allOf", "anyOf", "oneOf", "$ref")


def checked(schema: Any, where: str) -> dict[str, Any]:
    """A schema in a form that a grammar keeps in full.

    Whatever the grammar lets through is valid under `schema`. The converse does not hold: keys come
    in the order of the schema, and numbers and strings are written in one way.

    Args:
        schema: What a request holds; any value.
        where: Its name in messages, for example `response_format.json_schema.schema`.

    Raises:
        InvalidRequest: It is not a schema, has something that no grammar keeps, or accepts nothing.
            The message names the keyword; `param` is its path, which begins with `where`.
    """
    return _Checker(schema, Place(where)).run()


class _Checker:
    """One check: what was referred to so far, and what can be judged only at the end."""

    def __init__(self, root: Any, place: Place) -> None:
        self._root = root
        self._place = place
        self._draft = draft_of(root, place)
        self._members = 0
        self._numbers = Numbers()
        self._numbers_meet = False  # whether several schemas may bound one number
        self._names: dict[tuple[str, ...], str] = {}  # what each $ref is called afterwards
        self._todo: list[tuple[str, Any, Place]] = []
        self._one_ofs: list[tuple[list[Schema], frozenset[str], Place]] = []

    def run(self) -> dict[str, Any]:
        check_json(self._root, self._place)
        top = self._schema(self._root, self._place)
        definitions: dict[str, Schema] = {}
        while self._todo:
            name, target, place = self._todo.pop()
            definitions[name] = self._schema(target, place)
        if self._numbers_meet:
            self._numbers.check()
        proof = Disjointness(definitions)
        for options, kinds, place in self._one_ofs:
            proof.check(options, kinds, place)
        top, definitions = without_endless(top, definitions)
        if top is False:
            raise self._place.fault("it accepts no finite value")
        check_reach(top, definitions, self._place)
        if top is True:
            return {}
        return {**top, "$defs": definitions} if definitions else top

    def _schema(self, schema: Any, place: Place) -> Schema:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise place.fault("a schema must be an object or a boolean")
        check_keywords(schema, place, is_root=schema is self._root, draft=self._draft)
        kinds = leaves.kinds_of(schema, place)
        simple: dict[str, Any] = {"type": sorted(kinds)} if "type" in schema else {}
        simple |= self._numbers.constraint(schema, kinds, place)
        simple |= leaves.sizes(schema, place)
        _add(simple, leaves.texts(schema, kinds, place))
        simple |= self._array(schema, place)
        simple |= self._object(schema, place)
        probe(simple, kinds, schema, place)
        settle_counts(simple, place)
        out = self._combined(schema, simple, kinds, place)
        self._note_meetings(out)
        return out

    def _combined(
        self, schema: dict[str, Any], simple: dict[str, Any], kinds: frozenset[str], place: Place
    ) -> dict[str, Any]:
        """A schema with its simple keywords, as written anew, and those that speak of the whole.

        Simple keywords stay together, since some of them speak of others. Where `properties` stands
        among the rest decides about the order of keys.
        """
        parts = simple.pop("allOf", [])
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        side = before
        for keyword, value in schema.items():
            if keyword == "properties":
                side = after
            elif keyword in _IN_PLACE:
                inner = self._in_place(keyword, value, place.key(keyword))
                if keyword == "oneOf":
                    self._one_ofs.append((inner, kinds, place.key(keyword)))
                    inner = [{"anyOf": inner}]
                if keyword in ("allOf", "oneOf"):
                    if "allOf" not in before:
                        side["allOf"] = parts
                    parts += inner
                else:
                    side[keyword] = inner
        if parts and "allOf" not in before:
            after["allOf"] = parts
        return {**before, **simple, **after}

    def _in_place(self, keyword: str, value: Any, place: Place) -> Any:
        """The value, written anew, of a keyword that speaks of the whole."""
        if keyword in ("const", "enum"):
            self._count(leaves.members(value), place)
        if keyword == "const":
            return leaves.literal(value, place)
        if keyword == "$ref":
            return self._reference(value, place)
        if not isinstance(value, list):
            raise place.fault(f"{keyword} must be a list")
        if not value:
            raise place.fault(f"{keyword} is empty, so it accepts nothing")
        write = leaves.literal if keyword == "enum" else self._schema
        return [write(inner, place.item(i)) for i, inner in enumerate(value)]

    def _note_meetings(self, out: dict[str, Any]) -> None:
        bounded = bool(out.keys() - {"type", "const", "enum", "allOf", "anyOf", "$ref"})
        parts = bounded + len(out.get("allOf", ())) + ("anyOf" in out) + ("$ref" in out)
        if parts > 1 or {"properties", "patternProperties"} <= out.keys():
            self._numbers_meet = True

    def _array(self, schema: dict[str, Any], place: Place) -> dict[str, Any]:
        """Keywords about elements, in the form of draft 2020-12."""
        prefix, rest = "prefixItems", "items"
        if isinstance(schema.get("items"), list):  # until draft 2019-09
            if "prefixItems" in schema:
                raise place.key("items").fault("items must be a schema beside prefixItems")
            prefix, rest = "items", "additionalItems"
        out: dict[str, Any] = {}
        if prefix in schema:
            if not isinstance(schema[prefix], list):
                raise place.key(prefix).fault(f"{prefix} must be a list of schemas")
            at = place.key(prefix)
            out["prefixItems"] = [self._schema(v, at.item(i)) for i, v in enumerate(schema[prefix])]
        if rest in schema:
            out["items"] = self._schema(schema[rest], place.key(rest))
        return out

    def _object(self, schema: dict[str, Any], place: Place) -> dict[str, Any]:
        """Keywords about properties."""
        out: dict[str, Any] = {}
        if "properties" in schema:
            out["properties"] = self._map("properties", schema, place)
        if "patternProperties" in schema:
            at = place.key("patternProperties")
            found = self._map("patternProperties", schema, place)
            out["patternProperties"] = {
                leaves.pattern(name, at.key(name)): inner for name, inner in found.items()
            }
            if len(out["patternProperties"]) < len(found):
                raise at.fault("two of the patterns mean the same")
        if "additionalProperties" in schema:
            at = place.key("additionalProperties")
            out["additionalProperties"] = self._schema(schema["additionalProperties"], at)
        if "required" in schema:
            out["required"] = required_names(schema["required"], place.key("required"))
        if "propertyNames" in schema:
            at = place.key("propertyNames")
            check_names(self._schema(schema["propertyNames"], at), at)
        names = {*out.get("properties", ()), *out.get("required", ())}
        for name in names:
            leaves.text(name, place)
        self._count(len(names), place)
        return out

    def _map(self, keyword: str, schema: dict[str, Any], place: Place) -> dict[str, Schema]:
        value, at = schema[keyword], place.key(keyword)
        if not isinstance(value, dict):
            raise at.fault(f"{keyword} must be an object of schemas")
        return {name: self._schema(inner, at.key(name)) for name, inner in value.items()}

    def _count(self, members: int, place: Place) -> None:
        self._members += members
        if self._members > _MOST_MEMBERS:
            raise place.fault(f"it has more than {_MOST_MEMBERS} properties and literals")

    def _reference(self, value: Any, place: Place) -> str:
        """The new name of what a `$ref` points to, which is written later."""
        if not isinstance(value, str) or not (value == "#" or value.startswith("#/")):
            raise place.fault(
                f"$ref must point into this schema, like #/$defs/name, not to {value!r}"
            )
        parts = value.split("/")[1:]
        pointer = tuple(unquote(part).replace("~1", "/").replace("~0", "~") for part in parts)
        if pointer not in self._names:
            target, at = self._root, self._place
            for part in pointer:
                if isinstance(target, dict) and part in target:
                    target, at = target[part], at.key(part)
                elif isinstance(target, list) and part in map(str, range(len(target))):
                    target, at = target[int(part)], at.item(int(part))
                else:
                    raise place.fault(f"there is nothing at {value}")
            self._names[pointer] = str(len(self._names))
            self._todo.append((self._names[pointer], target, at))
        return f"#/$defs/{self._names[pointer]}"


def _add(simple: dict[str, Any], demands: list[dict[str, Any]]) -> None:
    """Add what patterns and formats demand to a schema; a second of a kind goes into `allOf`."""
    for demand in demands:
        for keyword, value in demand.items():
            if keyword.startswith("max"):
                simple[keyword] = min(simple.get(keyword, value), value)
            elif keyword.startswith("min"):
                simple[keyword] = max(simple.get(keyword, value), value)
            elif keyword in simple:
                simple.setdefault("allOf", []).append({keyword: value})
            else:
                simple[keyword] = value
