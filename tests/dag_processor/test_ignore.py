"""``.airflowignore`` in both syntaxes."""

from __future__ import annotations

from scheduler_app.dag_processor.ignore import Rules


def rules(text: str, syntax: str = "glob", folder: str = "") -> Rules:
    return Rules().within(folder, text, syntax)[0]


def test_a_glob_names_files_and_folders_and_a_later_line_takes_back():
    found = rules("skip_*.py\nold/\n!skip_not.py\n")
    paths = ("skip_a.py", "skip_not.py", "a/skip_b.py", "old/", "a/old/", "dag.py")
    ignored = {path for path in paths if found.ignores(path)}
    assert ignored == {"skip_a.py", "a/skip_b.py", "old/", "a/old/"}


def test_a_glob_with_a_slash_is_anchored_to_the_folder_of_its_file():
    found = rules("sub/dag.py\n", folder="team/")
    assert found.ignores("team/sub/dag.py")
    assert not found.ignores("team/other/sub/dag.py")


def test_a_nearer_glob_file_wins_over_a_farther_one():
    inner, _ = rules("*.py").within("keep/", "!*.py\n", "glob")
    assert inner.ignores("dag.py")
    assert not inner.ignores("keep/dag.py")


def test_a_regexp_is_searched_anywhere_in_the_path_and_comments_are_cut():
    found = rules("tenant_[0-9]  # numbered ones\n# all of it\n", "regexp")
    assert found.ignores("dags/tenant_1/dag.py")
    assert not found.ignores("dags/tenant_x/dag.py")


def test_a_regexp_that_does_not_compile_is_named_and_the_others_hold():
    found, problems = Rules().within("", "(\nskip\n", "regexp")
    assert [problem.split(" (")[0] for problem in problems] == ["line 1 is no regular expression: '('"]
    assert found.ignores("skip.py")
