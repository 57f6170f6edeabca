"""`cas config`: show settings with their origin, and change them."""

import os
import re
import stat
import threading
from pathlib import Path

import pytest

from objstore import Configuration, NoSuchSetting, RetentionLimits, SettingInvalid, SettingsUnreadable
from tests.support.command_runner import CommandRunner, cas


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder of the user's settings."""
    return tmp_path / "settings"


def write_user_settings(home: Path, text: str) -> None:
    file = home / "editledger" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_doctor_shows_a_value_with_a_backslash_as_status_does(runner: CommandRunner) -> None:
    runner.done("config", "set", "record.exclude", "a\\ b")
    (row,) = [row.strip() for row in runner.done("status").text.splitlines() if "record.exclude" in row]
    assert row.count("\\") == 2
    assert row in runner.cas("doctor").text


def test_settings_of_the_workspace_override_the_users_and_these_the_environment(
    runner: CommandRunner, home: Path
) -> None:
    def current() -> tuple[str, str]:
        found = runner.done(
            "config", "get", "retention.max_size", "--json", XDG_CONFIG_HOME=str(home), CAS_RETENTION_MAX_SIZE="3GB"
        ).json()
        return found["spelling"], found["origin"]

    assert current() == ("3GB", "CAS_RETENTION_MAX_SIZE")
    write_user_settings(home, '[retention]\nmax_size = "4GB"\n')
    assert current() == ("4GB", str(home / "editledger" / "config.toml"))
    runner.done("config", "set", "retention.max_size", "5GB")
    assert current() == ("5GB", str(runner.folder / ".cas" / "config.toml"))
    runner.done("config", "unset", "retention.max_size")
    assert current()[0] == "4GB"


def test_every_setting_is_listed_with_its_value_and_its_unit(runner: CommandRunner, home: Path) -> None:
    found = {line["name"]: line for line in runner.done("config", "--json", XDG_CONFIG_HOME=str(home)).lines()}
    assert found["retention.older_than"]["value"] is None
    assert (found["retention.max_size"]["value"], found["retention.max_size"]["unit"]) == (2 * 10**9, "bytes")
    assert (found["gc.background"]["value"], found["gc.background"]["unit"]) == (True, None)
    assert all(line["origin"] is None for line in found.values())
    listed = runner.done("config", XDG_CONFIG_HOME=str(home)).text
    assert re.search(r"^retention\.max_size +2GB +\(default\)$", listed, re.MULTILINE)


def test_setting_a_value_keeps_the_rest_of_the_file(runner: CommandRunner) -> None:
    file = runner.folder / ".cas" / "config.toml"
    file.write_text('# keep me\n[retention]\nolder_than = "1d" # too short\n')
    runner.done("config", "set", "retention.older_than", "30d")
    assert file.read_text() == '# keep me\n[retention]\nolder_than = "30d" # too short\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir() if path.name.startswith(".cas-")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("# mine\n", "# mine\n"),
        ('[retention]\nolder_than = "30d"\n', '[retention]\nolder_than = "30d"\n'),
        ("[gc] # what goes\n", "[gc] # what goes\n"),
        ("[gc]\n# off on laptops\n", "[gc]\n# off on laptops\n"),
        ('[gc]\nevery = "1h"\n', '[gc]\nevery = "1h"\n'),
        ('[gc]\n\n# about r\n[retention]\nolder_than = "30d"\n', '# about r\n[retention]\nolder_than = "30d"\n'),
    ],
)
def test_setting_and_unsetting_leaves_no_empty_section(runner: CommandRunner, before: str, after: str) -> None:
    file = runner.folder / ".cas" / "config.toml"
    file.write_text(before)
    runner.done("config", "set", "gc.background", "off")
    assert runner.done("config", "get", "gc.background").text == "off\n"
    runner.done("config", "unset", "gc.background")
    assert file.read_text() == after


def test_user_settings_apply_outside_a_workspace(tmp_path: Path, home: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(home)}
    assert cas("config", "set", "gc.background", "off", folder=tmp_path, settings=settings).status == 10
    assert cas("config", "set", "gc.background", "off", "--user", folder=tmp_path, settings=settings).status == 0
    assert cas("config", "get", "gc.background", folder=tmp_path, settings=settings).text == "off\n"


def test_a_symlinked_settings_file_of_the_user_stays_a_symlink(tmp_path: Path, home: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("# dots\n")
    (home / "editledger").mkdir(parents=True)
    link = home / "editledger" / "config.toml"
    link.symlink_to(real)
    settings = {"XDG_CONFIG_HOME": str(home)}
    assert cas("config", "set", "gc.background", "off", "--user", folder=tmp_path, settings=settings).status == 0
    assert link.is_symlink()
    assert real.read_text() == "# dots\n\n[gc]\nbackground = false\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[retention]\nolder_than = 30\n", "retention.older_than can't be '30' in "),
        ("[retention]\nmax_sise = 3\n", "There is no setting 'retention.max_sise' (in "),
        ("[retention\n", "The settings in "),
        ("\udcff", "it is not UTF-8"),
    ],
)
def test_an_invalid_settings_file_is_named(runner: CommandRunner, text: str, message: str) -> None:
    file = runner.folder / ".cas" / "config.toml"
    file.write_text(text, errors="surrogateescape")
    ran = runner.cas("config")
    assert ran.status == 1
    assert message in ran.said
    assert str(file) in ran.said


def test_an_unknown_setting_does_not_stop_recording(runner: CommandRunner) -> None:
    text = "[retention]\nolder_then = '30d'\n[record]\nignored = false\n"
    (runner.folder / ".cas" / "config.toml").write_text(text)
    (runner.folder / "a").write_bytes(b"found\n")
    runner.done("record")
    runner.done("snapshot")
    (runner.folder / "a").write_bytes(b"changed\n")
    runner.done("record")
    assert len(runner.done("log", "--json").lines()) == 1
    assert Configuration(str(runner.folder)).get("record.ignored").value is False
    assert runner.cas("config").status == 1
    ran = runner.cas("doctor")
    assert ran.status == 1
    assert "There is no setting 'retention.older_then'" in ran.text


def test_patterns_are_a_list_in_the_file_and_words_on_the_command_line(runner: CommandRunner, home: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(home)}
    file = runner.folder / ".cas" / "config.toml"
    runner.done("config", "set", "record.secrets", r"default !test.pem  my\ notes.txt /conf/[a-c]*", **settings)
    assert file.read_text() == ('[record]\nsecrets = ["default", "!test.pem", "my notes.txt", "/conf/[a-c]*"]\n')
    assert runner.done("config", "get", "record.secrets").text == "default !test.pem my\\ notes.txt /conf/[a-c]*\n"
    shape = runner.done("config", "get", "record.secrets", "--json").json()
    assert shape["value"] == ["default", "!test.pem", "my notes.txt", "/conf/[a-c]*"]
    runner.done("config", "set", "record.secrets", "none")
    assert file.read_text() == "[record]\nsecrets = []\n"
    assert runner.done("config", "get", "record.secrets").text == "none\n"
    runner.done("config", "unset", "record.secrets")
    found = runner.done("config", "get", "record.secrets", "--json", CAS_RECORD_SECRETS="*.one *.two").json()
    assert (found["value"], found["origin"]) == (["*.one", "*.two"], "CAS_RECORD_SECRETS")
    for wrong in ("/", "a//b", "!"):
        assert "separated by spaces" in runner.cas("config", "set", "record.exclude", wrong).said
    file.write_text("[record]\nexclude = [1]\n")
    assert "record.exclude can't be" in runner.cas("config").said


def test_an_unknown_setting_can_be_unset(runner: CommandRunner) -> None:
    file = runner.folder / ".cas" / "config.toml"
    file.write_text("[retention]\nmax_sise = 3\n")
    runner.done("config", "unset", "retention.max_sise")
    assert file.read_text() == ""
    runner.done("config")


def test_invalid_values_and_names_are_refused_with_advice(runner: CommandRunner) -> None:
    assert "as in 30d, or never" in runner.cas("config", "set", "retention.older_than", "soon").said
    assert "Did you mean retention.max_size?" in runner.cas("config", "set", "retention.maxsize", "1GB").said
    assert runner.cas("config", "unset", "gc.background").status == 1
    assert "There is no setting 'maxsize'" in runner.cas("config", "unset", "maxsize").said
    assert not (runner.folder / ".cas" / "config.toml").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_settings_path_that_is_not_a_regular_file_is_refused(
    runner: CommandRunner, tmp_path: Path, kind: str
) -> None:
    file = runner.folder / ".cas" / "config.toml"
    match kind:
        case "link":
            (tmp_path / "elsewhere").write_text("[gc]\nbackground = false\n")
            file.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(file)
        case _:
            file.mkdir()
    with pytest.raises(SettingsUnreadable):
        Configuration(str(runner.folder)).get("gc.background")


def test_concurrent_changes_are_all_kept(runner: CommandRunner) -> None:
    file = runner.folder / ".cas" / "config.toml"
    values = {"retention.older_than": "0s", "retention.max_size": "0B", "gc.background": "on"}
    names = list(values)

    def change(name: str) -> None:
        for _ in range(20):
            Configuration(str(runner.folder)).set(name, values[name])
            Configuration(str(runner.folder)).unset(name)

    threads = [threading.Thread(target=change, args=(name,)) for name in names]
    file.write_text("# kept\n")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        Configuration(str(runner.folder)).set(name, values[name])
    assert file.read_text().startswith("# kept\n")
    origins = {given.setting.name: given.origin for given in Configuration(str(runner.folder)).all()}
    assert [origins[name] for name in names] == [str(file)] * len(names)


def test_without_settings_the_limits_are_the_defaults(runner: CommandRunner) -> None:
    values = {given.setting.name: given.value for given in Configuration(str(runner.folder)).all() if not given.origin}
    limits = RetentionLimits()
    assert values["retention.older_than"] == limits.older_than
    assert values["retention.max_size"] == limits.max_size


def test_errors_carry_their_facts(runner: CommandRunner) -> None:
    configuration = Configuration(str(runner.folder))
    with pytest.raises(SettingInvalid) as invalid:
        configuration.set("gc.background", "perhaps")
    assert (invalid.value.name, invalid.value.spelling) == ("gc.background", "perhaps")
    with pytest.raises(NoSuchSetting) as unknown:
        configuration.get("max_size")
    assert unknown.value.near == "retention.max_size"


def test_changes_of_policies_are_recorded_and_listed(runner: CommandRunner) -> None:
    runner.done("config", "set", "review.accept", "docs/**  *.md")
    runner.done("config", "set", "review.accept", "docs/** *.md")
    runner.done("config", "set", "gc.every", "2min")
    runner.done("config", "unset", "review.accept")
    runner.done("config", "set", "review.always", "none")
    shapes = runner.done("config", "history", "--json").lines()
    assert [(shape["name"], shape["before"], shape["after"]) for shape in shapes] == [
        ("review.accept", "", "docs/** *.md"),
        ("review.accept", "docs/** *.md", ""),
        ("review.always", "", "none"),
    ]
    assert "review.accept: not set -> docs/** *.md" in runner.done("config", "history", "review.accept").text
    assert runner.done("status", "--json").json()["policies"] == []


def test_a_policy_written_into_the_file_by_hand_is_reported_by_status(runner: CommandRunner) -> None:
    (runner.folder / ".cas" / "config.toml").write_text('[review]\naccept = ["**"]\n')
    said = runner.done("status").text
    assert "policies changed, but not by `cas config` (set them with it, and they apply):\n  review.accept\n" in said
    assert runner.done("status", "--json").json()["policies"] == ["review.accept"]


def test_accept_all_leaves_what_review_always_names_to_a_decision_by_name(runner: CommandRunner) -> None:
    runner.done("config", "set", "review.always", ".github/**")
    runner.write(".github/ci.yml", b"on: push\n")
    runner.write("a", b"1\n")
    accepted = runner.cas("accept", "--all")
    assert (accepted.status, ".github/ci.yml" in accepted.said) == (0, True)
    assert runner.statuses()["1:0"] == "pending"
    assert runner.statuses()["2:0"] == "accepted"
    runner.done("accept", "--file", ".github/ci.yml")
    assert runner.statuses()["1:0"] == "accepted"
