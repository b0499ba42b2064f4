"""`mtplx inspect`: what a model is, from its files alone."""

import json


def rows(shown):
    """Label -> value of the table."""
    assert (shown.returncode, shown.stderr) == (0, "")
    return dict(line.split("  ", 1) for line in shown.stdout.splitlines() if line[0] != " ")


def test_the_table_tells_what_to_expect(mtplx, tiny_folder):
    table = {label: text.strip() for label, text in rows(mtplx("inspect", tiny_folder)).items()}
    assert table["Model"] == "tiny"
    assert table["Architecture"] == "llama"
    assert table["Context"] == "4,096 tokens"
    assert table["MTP head"] != "none"
    assert table["Verdict"].startswith("can be served with MTP")


def test_a_model_without_head_is_told_from_one_with(mtplx, headless_folder):
    table = rows(mtplx("inspect", headless_folder))
    assert table["MTP head"].strip() == "none"
    assert "without drafting" in table["Verdict"]


def test_json_is_for_programs(mtplx, tiny_folder):
    content = json.loads(mtplx("inspect", tiny_folder, "--json").stdout)
    assert content["id"] == "tiny"
    assert content["folder"] == str(tiny_folder)
    assert (content["layers"], content["hidden_size"], content["drafts"]) == (4, 64, True)
    assert content["footprint"]["per_token_bytes"] > 0


def test_weights_are_not_read(mtplx, tiny_folder, tmp_path):
    """A file whose weights are all zero says the same."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes((tiny_folder / name).read_bytes())
    whole = (tmp_path / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    (tmp_path / "model.safetensors").write_bytes(whole[:header] + bytes(len(whole) - header))
    beheaded, whole_folder = (rows(mtplx("inspect", f)) for f in (tmp_path, tiny_folder))
    for label in ("Parameters", "MTP head", "Verdict"):
        assert beheaded[label] == whole_folder[label]


def test_what_is_not_here_is_not_downloaded(mtplx):
    for reference in ("org/model", "smollm2-135m-instruct"):
        shown = mtplx("inspect", reference)
        assert (shown.returncode, shown.stdout) == (1, "")
        assert "`mtplx serve" in shown.stderr


def test_a_damaged_file_is_named(mtplx, tiny_folder, tmp_path):
    (tmp_path / "config.json").write_bytes((tiny_folder / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\x08\x00")
    shown = mtplx("inspect", tmp_path)
    assert shown.returncode == 1
    assert "model.safetensors is not a readable safetensors file" in shown.stderr
