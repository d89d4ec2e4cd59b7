import subprocess
import sys

import pytest

from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError


def plan(**values):
    return parse_plan(
        {"title": "T", "sources": ["digits"], "recipes": ["ln"], **values}
    )


def test_another_plan_is_refused_and_a_larger_one_is_not(tmp_path, caplog):
    folder = PlanFolder(tmp_path / "plan")
    folder.open(plan(seeds=[0, 1]))
    folder.close()
    again = PlanFolder(tmp_path / "plan")
    assert again.grown(plan(seeds=[0, 1])).seeds == [0, 1]
    with pytest.raises(UsageError, match="`dims` was not given, received 8"):
        again.grown(plan(seeds=[0], dims=[8]))
    whole = again.grown(plan(seeds=[2]))
    assert whole.seeds == [0, 1, 2]
    with caplog.at_level("INFO"), again:
        again.open(whole)
    assert "plan: seed 2." in caplog.text
    assert PlanFolder(tmp_path / "plan").grown(plan()) == whole


def test_a_folder_that_only_knows_its_pace_is_free(tmp_path):
    (tmp_path / "estimate.json").write_text("[]")
    with PlanFolder(tmp_path) as folder:
        folder.open(plan())
    assert (tmp_path / "estimate.json").read_text() == "[]"
    assert (tmp_path / "plan.yaml").is_file()


def test_what_a_kill_leaves_of_a_pace_is_removed(tmp_path):
    left = tmp_path / ".estimate.partial.json"
    left.write_text("[")
    with PlanFolder(tmp_path) as folder:
        folder.open(plan())
    assert not left.exists()


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir")
    with pytest.raises(UsageError, match="not the folder of a plan"):
        PlanFolder(tmp_path).open(plan())
    assert sorted(item.name for item in tmp_path.iterdir()) == ["letter.txt"]


@pytest.mark.slow
def test_two_commands_never_write_one_folder(tmp_path):
    script = (
        "import sys\n"
        "from keras_dml.config.plans import parse_plan\n"
        "from keras_dml.comparison.plan_folder import PlanFolder\n"
        "plan = {'title': 'T', 'sources': ['digits'], 'recipes': ['ln']}\n"
        "folder = PlanFolder(sys.argv[1])\n"
        "folder.open(parse_plan(plan))\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "plan")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(UsageError, match="Another process is writing"):
            PlanFolder(tmp_path / "plan").open(plan())
    finally:
        other.kill()
        other.communicate()
    # The lock ends with its holder, even a killed one.
    folder = PlanFolder(tmp_path / "plan")
    folder.open(plan())
    folder.close()
