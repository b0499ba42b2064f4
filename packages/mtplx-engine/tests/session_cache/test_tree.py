"""The tree against a brute force over everything it holds."""

import random

import pytest

from mtplx_engine.cache.tree import Held, Node, PrefixTree

ROW = 10  # bytes of a token


def grow(tree: PrefixTree, root: Node, text: tuple[int, ...], random_: random.Random) -> Node:
    """Put a text into the tree in blocks of random length; a state at its end."""
    node = root
    while node.end < len(text):
        child = tree.child(node, text)
        if child is None:
            end = min(node.end + random_.randint(1, 4), len(text))
            tokens = text[node.end : end]
            child = tree.add(node, tokens, Held(None, ROW * len(tokens)), None)
            assert child is not None
        node = child
        if random_.random() < 0.3:
            tree.add_state(node, Held(None, 5, final=random_.random() < 0.5))
    return node


def text_of(node: Node) -> tuple[int, ...]:
    return tuple(token for each in node.path() for token in each.tokens)


def common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def deepest(tree: PrefixTree, text: tuple[int, ...], *, stateful: bool) -> int:
    best = 0
    for node in tree.nodes():
        own = text_of(node)
        shared = common(own, text)
        if shared == len(own) and node.state and (node.state.final or shared < len(text)):
            best = max(best, shared)
        if not stateful:
            best = max(best, shared - 1)
    return best


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_finds_the_deepest_place(seed: int, stateful: bool) -> None:
    random_ = random.Random(seed)
    tree = PrefixTree(10**9, stateful=stateful)
    root = tree.root(b"model")
    texts = [tuple(random_.choices(range(2), k=random_.randint(1, 12))) for _ in range(30)]
    for text in texts:
        grow(tree, root, text, random_)
        assert tree.bytes == sum(node.bytes for node in tree.nodes())
    for text in texts + [(*text, 0, 1, 1) for text in texts] + [(1, 0) * 8]:
        place = tree.find(root, text)
        assert place.length == deepest(tree, text, stateful=stateful)
        assert place.known == max(common(text_of(node), text) for node in tree.nodes())
        assert text_of(place.leaf)[: place.length] == text[: place.length]


def test_identities_are_apart() -> None:
    tree = PrefixTree(10**6, stateful=False)
    grow(tree, tree.root(b"one"), (1, 2, 3), random.Random(0))
    assert tree.find(tree.root(b"two"), (1, 2, 3)).known == 0


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_never_holds_more_than_its_limit(seed: int, stateful: bool) -> None:
    random_ = random.Random(seed)
    pinned: list[Node] = []
    tree = PrefixTree(40 * ROW, stateful=stateful, pinned=lambda: pinned)
    root = tree.root(b"model")
    for _ in range(60):
        text = tuple(random_.choices(range(3), k=random_.randint(1, 10)))
        pinned[:] = [grow(tree, root, text, random_)]
        assert tree.bytes <= tree.limit
        assert tree.bytes == sum(node.bytes for node in tree.nodes())
        assert tree.blocks == len(list(tree.nodes()))
        assert text_of(pinned[0]) == text, "what is pinned stays, with all that leads to it"
    assert tree.evicted


def test_what_was_of_use_last_stays_longest() -> None:
    tree = PrefixTree(3 * ROW, stateful=False)
    root = tree.root(b"model")
    random_ = random.Random(0)
    old, other = grow(tree, root, (1,), random_), grow(tree, root, (2,), random_)
    tree.touch(old)
    other.state = old.state = None
    tree.bytes = 2 * ROW
    grow(tree, root, (3,), random_)
    grow(tree, root, (4,), random_)
    assert old.parent is root
    assert other.parent is None


def test_latest_turns_make_room_last() -> None:
    tree = PrefixTree(2 * ROW, stateful=False)
    root = tree.root(b"model")
    kept = tree.add(root, (1,), Held(None, ROW), None)
    passing = tree.add(root, (2,), Held(None, ROW), None)
    assert kept is not None
    assert passing is not None
    kept.kept = 1
    assert tree.add(root, (3,), Held(None, ROW), None)
    assert kept.parent is root
    assert passing.parent is None


def test_more_than_the_limit_is_refused_and_nothing_is_lost() -> None:
    tree = PrefixTree(2 * ROW, stateful=False)
    root = tree.root(b"model")
    assert tree.add(root, (1,), Held(None, ROW), None)
    assert tree.add(root, (2, 2, 2), Held(None, 3 * ROW), None) is None
    assert tree.blocks == 1
