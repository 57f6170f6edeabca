"""Which requests the server accepts: by their origin, their token or cookie, and their form."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import cli.web
from tests.support.command_runner import CommandRunner
from tests.support.plain_http import NO_CERTIFICATES
from tests.support.review_server import SECRET, ReviewServer, cookie_of, review_server

NOTHING: dict[str, str] = {}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    """Return a server that all tests of the module use."""
    runner = CommandRunner(tmp_path_factory.mktemp("guarded"))
    runner.write("a", b"1\n2\n3\n")
    with review_server(runner.folder) as server:
        yield server
        assert server.end() == (0, "")


def asked(
    served: ReviewServer,
    path: str = "/api/queue",
    method: str = "GET",
    content: bytes = b"",
    secret: str | None = None,
    **headers: str,
) -> httpx2.Response:
    """Send a request with the cookie, the secret (None: the right one) and these headers, without the client's own."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    right = served.client.headers[SECRET]
    given = {"Cookie": cookie_of(served.client), SECRET: right if secret is None else secret, **named}
    with httpx2.Client(base_url=served.origin, verify=NO_CERTIFICATES, timeout=60) as client:
        return client.request(method, path, content=content or None, headers={n: v for n, v in given.items() if v})


def posted(
    served: ReviewServer, body: object, path: str = "/api/decide", secret: str | None = None, **headers: str
) -> httpx2.Response:
    """Send a request with a body as the page does."""
    given = {"Origin": served.origin, "Content-Type": "application/json"} | headers
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return asked(served, path, "POST", content, secret, **given)


# ---- who


def test_with_the_cookie_the_queue_is_answered(served: ReviewServer) -> None:
    assert asked(served).status_code == 200


@pytest.mark.parametrize("cookie", ["", "editledger=x", "{name}=", "{name}=wrong", "{other}={value}"])
def test_without_the_cookie_nothing_is_answered(served: ReviewServer, cookie: str) -> None:
    name, _, value = cookie_of(served.client).partition("=")
    sent = cookie.format(name=name, other=f"{name}0", value=value)
    answer = asked(served, Cookie=sent)
    assert (answer.status_code, list(answer.json())) == (401, ["error"])
    assert "cas web" in answer.json()["error"]
    page = asked(served, "/", Cookie=sent)
    assert page.status_code == 401
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert asked(served, "/static/anything.js", Cookie=sent).status_code == 401


def test_a_cookie_of_another_server_does_not_count(served: ReviewServer, runner: CommandRunner) -> None:
    with review_server(runner.folder) as other:
        assert asked(served, Cookie=cookie_of(other.client)).status_code == 401
        assert asked(other, Cookie=cookie_of(served.client)).status_code == 401


def test_the_cookie_is_found_among_those_of_other_programs(served: ReviewServer) -> None:
    assert asked(served, Cookie=f"session=1; {cookie_of(served.client)};other=2").status_code == 200


@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:{port}", "127.0.0.1.example.org:{port}"]
)
def test_another_host_is_refused_before_anything_else(served: ReviewServer, host: str) -> None:
    assert asked(served, Host=host.format(port=served.port)).status_code == 421
    assert asked(served, f"/?token={served.token}", Host=host.format(port=served.port)).status_code == 421


def test_localhost_is_this_server(served: ReviewServer) -> None:
    assert asked(served, Host=f"LocalHost:{served.port}").status_code == 200


@pytest.mark.parametrize(
    "origin", ["null", "http://example.org", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://127.0.0.1"]
)
def test_a_page_of_another_origin_is_refused(served: ReviewServer, origin: str) -> None:
    wrong = origin.format(port=served.port)
    assert asked(served, Origin=wrong).status_code == 403
    assert posted(served, {"keys": []}, "/api/seen", Origin=wrong).status_code == 403


def test_what_changes_something_needs_an_origin(served: ReviewServer) -> None:
    assert posted(served, {"keys": []}, "/api/seen", Origin="").status_code == 403
    assert posted(served, {"keys": []}, "/api/seen").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_caused_is_refused(served: ReviewServer, site: str) -> None:
    assert asked(served, Sec_Fetch_Site=site).status_code == 403
    assert asked(served, "/", Sec_Fetch_Site=site).status_code == 403
    assert asked(served, "/?token=wrong", Sec_Fetch_Site=site).status_code == 403
    assert asked(served, Sec_Fetch_Site="same-origin").status_code == 200


# ---- the token


def test_the_token_is_swapped_for_a_strict_cookie(served: ReviewServer) -> None:
    answer = asked(served, f"/?token={served.token}", Cookie="")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/#secret={served.client.headers[SECRET]}")
    cookie = answer.headers["set-cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert str(served.port) in cookie.partition("=")[0]
    assert served.token not in cookie
    assert served.client.headers[SECRET] not in cookie
    assert asked(served, Cookie=cookie.partition(";")[0]).status_code == 200


def test_from_another_site_the_token_leads_on_by_a_page_of_the_server(served: ReviewServer) -> None:
    # A browser that follows a redirect from there sends no strict cookie.
    answer = asked(served, f"/?token={served.token}", Cookie="", Sec_Fetch_Site="cross-site")
    assert answer.status_code == 200
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    assert f'content="0;url=/#secret={served.client.headers[SECRET]}"' in answer.text
    assert served.token not in answer.text


@pytest.mark.parametrize(
    "query", ["token=", "token=wrong", "token={token}x", "token={token}&token={token}", "t={token}"]
)
def test_a_wrong_token_is_refused(served: ReviewServer, query: str) -> None:
    answer = asked(served, f"/?{query.format(token=served.token)}", Cookie="")
    assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)


def test_the_token_counts_at_its_own_address_alone(served: ReviewServer) -> None:
    assert asked(served, f"/api/queue?token={served.token}", Cookie="").status_code == 401
    answer = posted(served, {}, f"/?token={served.token}", Cookie="")
    assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)


# ---- the page's own secret


@pytest.mark.parametrize("secret", ["", "wrong", "{cookie}", "{token}"])
def test_the_cookie_alone_shows_and_changes_nothing(served: ReviewServer, secret: str) -> None:
    """A server at another port of this machine gets the cookie from the browser, and nothing else."""
    wrong = secret.format(cookie=cookie_of(served.client).partition("=")[2], token=served.token)
    for path in (
        "/api/queue",
        "/api/file?document=1",
        "/api/events",
        "/rendered?document=1",
        f"/image?blob={'0' * 64}",
    ):
        assert asked(served, path, secret=wrong).status_code == 401
        mark = "&" if "?" in path else "?"
        assert asked(served, f"{path}{mark}secret={wrong}", secret="").status_code == 401
    assert posted(served, {"keys": []}, "/api/seen", secret=wrong).status_code == 401
    right = served.client.headers[SECRET]
    assert posted(served, {"keys": []}, f"/api/seen?secret={right}", secret=wrong).status_code == 401
    assert right not in asked(served, "/", secret="").text


def test_an_address_that_comes_without_headers_may_hold_the_secret(served: ReviewServer) -> None:
    right = served.client.headers[SECRET]
    assert asked(served, f"/api/file?document=1&secret={right}", secret="").status_code == 200
    assert asked(served, f"/api/file?secret={right}&document=1&secret={right}", secret="").status_code == 401


# ---- how


def test_every_answer_keeps_the_page_to_itself(served: ReviewServer) -> None:
    answers = [
        asked(served),
        asked(served, Cookie=""),
        asked(served, secret=""),
        asked(served, Host="example.org"),
        asked(served, "/api/nothing"),
        asked(served, "/static/nothing.js"),
        asked(served, f"/?token={served.token}"),
        asked(served, method="DELETE"),
        posted(served, b"{"),
    ]
    for answer in answers:
        headers = answer.headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] in {"no-store", "no-cache"}
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_head_and_post_are_served(served: ReviewServer, method: str) -> None:
    answer = asked(served, method=method, Origin=served.origin)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_route_has_its_own_method(served: ReviewServer) -> None:
    assert posted(served, {}, "/api/queue").status_code == 405
    assert asked(served, "/api/decide").status_code == 405
    assert asked(served, method="HEAD").content == b""
    assert asked(served, "/api/events", method="HEAD").status_code == 200


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "text/json", "application/jsonp"]
)
def test_only_json_is_taken(served: ReviewServer, kind: str) -> None:
    assert posted(served, {"keys": []}, "/api/seen", **{"Content-Type": kind}).status_code == 415
    charset = {"Content-Type": "application/json; charset=utf-8"}
    assert posted(served, {"keys": []}, "/api/seen", **charset).status_code == 200


def test_a_huge_body_is_refused(served: ReviewServer) -> None:
    answer = posted(served, b'{"keys": ["' + b"0" * (5 << 20) + b'"]}', "/api/seen")
    assert answer.status_code == 413
    assert asked(served).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"keys": [], "keys": []}',
        b'{"keys": NaN}',
        b'{"keys": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"keys": [{}]}',
        b'{"keys": ["x"]}',
        b'{"keys": "x"}',
        b'{"keys": [1]}',
    ],
)
def test_a_broken_body_is_refused(served: ReviewServer, body: bytes) -> None:
    answer = posted(served, body, "/api/seen")
    assert (answer.status_code, list(answer.json())) == (400, ["error"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"action": "accept", "keys": ["0" * 32], "Keys": []}, "'Keys'"),
        ({"keys": ["0" * 32]}, "action"),
        ({"action": "undo", "keys": ["0" * 32]}, "action"),
        ({"action": "accept"}, "keys, units"),
        ({"action": "accept", "keys": ["0" * 32], "units": {"1:1": "pending"}}, "keys, units"),
        ({"action": "accept", "units": {"1": "pending"}}, "12:2"),
        ({"action": "accept", "units": {"01:1": "pending"}}, "12:2"),
        ({"action": "accept", "units": {"1:1": "gone"}}, "status"),
        ({"action": "accept", "keys": ["0" * 32], "shown": "0"}, "no field 'shown'"),
        ({"action": "accept", "keys": ["0" * 32], "cascade": 1}, "cascade"),
        ({"action": "accept", "keys": ["0" * 32], "cascade": True}, "rejection"),
        ({"action": "reject", "keys": ["0" * 32], "cascade": True}, "ticket"),
        ({"action": "reject", "keys": ["0" * 32], "cascade": True, "markers": True}, "exclude"),
        ({"action": "reject", "keys": ["0" * 32], "on_external": "keep"}, "ticket"),
        ({"action": "reject", "keys": ["0" * 32], "reason": 1}, "reason"),
        ({"action": "reject", "keys": ["0" * 32], "reason": "\ud800"}, "Unicode"),
        ({"action": "reject", "keys": ["0" * 32], "running": "ask"}, "running"),
    ],
)
def test_a_field_that_makes_no_sense_is_named(served: ReviewServer, body: object, says: str) -> None:
    answer = posted(served, body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("document=1&document=1", 400),
        ("document=1&other=1", 400),
        ("", 400),
        ("document=x", 400),
        ("document=-1", 400),
        ("document=99999999999999999999999", 400),
        ("document=1&count=1000000", 400),
        ("document=99", 404),
        ("document=1", 200),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(served: ReviewServer, query: str, status: int) -> None:
    assert asked(served, f"/api/file?{query}").status_code == status


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/types.d.ts",
        "/static/../guard.py",
        "/static/..%2fguard.py",
        "/static/%2e%2e/guard.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/vendor/..%2findex.html",
        "/static/vendor/README.md",
        "/static/%00",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/guard.py",
    ],
)
def test_only_the_files_of_the_page_are_served(served: ReviewServer, path: str) -> None:
    answer = asked(served, path)
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_a_file_of_the_page_is_sent_again_only_when_it_has_changed(served: ReviewServer) -> None:
    for path in (Path(cli.web.__file__).parent / "static").rglob("*"):
        address = f"/static/{path.relative_to(Path(cli.web.__file__).parent / 'static').as_posix()}"
        answer = asked(served, address)
        if path.suffix not in {".html", ".js", ".css", ".svg", ".png"}:
            assert answer.status_code == 404
            continue
        assert (answer.status_code, answer.content) == (200, path.read_bytes())
        again = asked(served, address, If_None_Match=answer.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        assert asked(served, address, Cookie="").status_code == 401
