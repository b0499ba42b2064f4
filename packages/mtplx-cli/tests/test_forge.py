"""`mtplx forge train`: a head for a model that has none, from the shell."""

SHORT = ("--minutes", "5", "--steps", "3", "--tokens", "300", "--length", "64")


def test_a_model_without_a_head_gets_one(mtplx, headless_folder, tmp_path):
    run = ("--run-dir", tmp_path / "run")
    forged = mtplx("forge", "train", headless_folder, "--out", headless_folder, *SHORT, *run)
    assert forged.returncode == 0, forged.stderr
    assert forged.stdout.strip() == str(headless_folder / "mtp.safetensors")
    assert "held out: overlap" in forged.stderr
    shown = mtplx("inspect", headless_folder)
    assert "can be served with MTP" in shown.stdout
    answered = mtplx("run", "Hello", "--model", headless_folder, "--mtp", "--max-tokens", "5")
    assert answered.returncode == 0, answered.stderr
    again = mtplx("forge", "train", headless_folder, "--out", tmp_path, *SHORT, *run)
    assert "3 steps" in again.stderr, "a finished run has nothing more to do"
    refused = mtplx("forge", "train", headless_folder, *SHORT, *run, "--no-resume")
    assert refused.returncode == 1
    assert "holds a run already" in refused.stderr


def test_wrong_words_are_named(mtplx, headless_folder, tmp_path):
    run = ("--run-dir", tmp_path / "run")
    wrong = mtplx("forge", "train", headless_folder, "--draft-vocab", "zero", *run)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "neither a number nor full" in wrong.stderr
    missing = mtplx("forge", "train", tmp_path / "nowhere", *run)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "nowhere" in missing.stderr
