# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""The page of taskmq-gateway without a browser: its files, its sessions, and who may begin one."""

import gzip
import os
import re

from broker import Broker, eventually
from gateway import Gateway
from test_gateway import check, check_problem, submit

SAME = {"Sec_Fetch_Site": "same-origin", "X_Taskmq_Request": "1"}


def cookie_of(answer):
    return answer.fields["set-cookie"].split(";")[0]


def log_in(gateway, token="first"):
    answer = gateway.post("/v1/session", token=token)
    check("log in", answer.status, 200)
    return answer, cookie_of(answer)


def try_files(gateway):
    root = gateway.get("/", token=None)
    check("root", (root.status, root.fields["location"]), (303, "/ui"))
    page = gateway.get("/ui", token=None)
    policy = page.fields["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'",
                 "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"):
        assert part in policy.split("; "), policy
    assert "unsafe" not in policy and "*" not in policy, policy
    text = page.body.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style| on\w+=| style=", text), text
    size = packed_size = 0
    directory = os.path.join(os.environ["TASKMQ_SOURCE"], "gateway/web")
    for name in sorted(os.listdir(directory)):
        answer = gateway.get("/ui" if name == "index.html" else f"/ui/{name}", token=None)
        with open(os.path.join(directory, name), "rb") as file:
            check(name, (answer.status, answer.body), (200, file.read()))
        size += len(answer.body)
        target = "/ui" if name == "index.html" else f"/ui/{name}"
        packed = gateway.get(target, token=None, Accept_Encoding="br, gzip;q=0.5")
        check(f"{name} packed", (packed.fields["content-encoding"], gzip.decompress(packed.body)),
              ("gzip", answer.body))
        check("which one depends", packed.fields["vary"], "Accept-Encoding")
        assert packed.fields["etag"] != answer.fields["etag"], packed
        for field in ("gzip;q=0", "gzip; q=0.0", "br", "identity"):
            plain = gateway.ask("HEAD", target, token=None, Accept_Encoding=field)
            check(field, (plain.fields.get("content-encoding"), plain.fields["etag"]),
                  (None, answer.fields["etag"]))
        packed_size += len(packed.body)
        for field, value in (("cache-control", "no-cache"), ("x-content-type-options", "nosniff"),
                             ("referrer-policy", "no-referrer"), ("content-security-policy", policy),
                             ("cross-origin-opener-policy", "same-origin"),
                             ("cross-origin-resource-policy", "same-origin")):
            check(f"{name}: {field}", answer.fields[field], value)
        again = gateway.get("/ui" if name == "index.html" else f"/ui/{name}", token=None,
                            If_None_Match=answer.fields["etag"])
        check(f"{name} again", (again.status, again.body), (304, b""))
        for word in re.findall(r'from "\./([\w.]+)"|(?:src|href)="/ui/([\w.]+)"',
                               answer.body.decode()):
            assert (word[0] or word[1]) in os.listdir(directory), (name, word)
    assert size < 128 * 1024, f"the page has {size} bytes"
    assert packed_size < 42 * 1024, f"the page has {packed_size} bytes, packed"
    check_problem(gateway.get("/ui/none.js", token=None), 404, "not-found")
    check_problem(gateway.get("/ui/..%2fgateway.key", token=None), 400, "malformed")


def try_kinds():
    """An EventSource hears only the kinds that it asks for by their names."""
    with open(os.path.join(os.environ["TASKMQ_SOURCE"], "gateway/web/net.js"), encoding="utf-8") as file:
        heard = re.search(r"const KINDS = \[(.*?)\];", file.read(), re.S).group(1)
    with open(os.path.join(os.environ["TASKMQ_SOURCE"], "proto/taskmq_types.h"), encoding="utf-8") as file:
        text = file.read()
    begin = text.index('X (1, SUBMITTED, "submitted")')
    kinds = re.findall(r'X \(\d+, \w+, "(\w+)"\)', text[begin:text.index("\n\n", begin)])
    check("kinds of events", sorted(re.findall(r'"(\w+)"', heard)), sorted(kinds))


def try_session(gateway):
    answer, cookie = log_in(gateway)
    check("who", {key: answer.json[key] for key in ("principal", "roles", "namespaces", "by")},
          {"principal": "local", "roles": ["operator"], "namespaces": ["default"], "by": "token"})
    flags = answer.fields["set-cookie"].split("; ")[1:]
    check("flags", flags, ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"])
    seen = gateway.get("/v1/session", token=None, Cookie=f"other=1; {cookie}")
    check("by the cookie", (seen.json["principal"], seen.json["by"]), ("local", "cookie"))
    check("reads", gateway.get("/v1/queues", token=None, Cookie=cookie).status, 200)
    check_problem(gateway.post("/v1/session", token=None, Cookie=cookie, **SAME), 401,
                  "not-authenticated")
    check("the namespace by its parameter",
          gateway.get("/v1/queues?namespace=default", token=None, Cookie=cookie).status, 200)
    check_problem(gateway.get("/v1/queues?namespace=other", token=None, Cookie=cookie), 403, "denied")
    return cookie


def try_forgery(gateway, cookie):
    """What another page can make a browser send."""
    body = {"queue": "q"}
    mine = {"Cookie": cookie}
    forged = ({}, {"X_Taskmq_Request": "1"}, {"Sec_Fetch_Site": "same-origin"},
              {"X_Taskmq_Request": "1", "Sec_Fetch_Site": "same-site"},
              {"X_Taskmq_Request": "1", "Sec_Fetch_Site": "cross-site"},
              {"X_Taskmq_Request": "1", "Sec_Fetch_Site": "none"},
              {"X_Taskmq_Request": "2", "Sec_Fetch_Site": "same-origin"})
    for more in forged:
        told = check_problem(gateway.post("/v1/tasks", body, token=None, **mine, **more), 401,
                             "not-authenticated")
        assert "'Sec-Fetch-Site: same-origin'; programs use a token" in told["detail"], told
        check_problem(gateway.ask("DELETE", "/v1/session", token=None, **mine, **more), 401,
                      "not-authenticated")
    for site in ("same-site", "cross-site"):
        check_problem(gateway.get("/v1/tasks", token=None, Sec_Fetch_Site=site, **mine), 401,
                      "not-authenticated")
    for site in ("same-origin", "none"):
        check(site, gateway.get("/v1/tasks", token=None, Sec_Fetch_Site=site, **mine).status, 200)
    check("ours", gateway.post("/v1/tasks", body, token=None, **mine, **SAME).status, 201)
    check_problem(gateway.post("/v1/tasks", body, token=None, Origin="http://evil.example", **mine,
                               **SAME), 403, "foreign-origin")
    check_problem(gateway.get("/ui", token=None, Host="evil.example"), 403, "foreign-origin")


def try_bytes(gateway, cookie):
    """What a task carries is of our own origin: it is to be shown or kept, and never to run."""
    script = gateway.post("/v1/queues/q/tasks", b"hacked=1", Content_Type="text/javascript")
    target = f"/v1/tasks/{script.json['task_id']}/payload"
    for wanted in (None, "empty", "document", "image", "audio", "video"):
        answer = gateway.get(target, token=None, Cookie=cookie, Sec_Fetch_Site="same-origin",
                             **({"Sec_Fetch_Dest": wanted} if wanted else {}))
        check(f"for {wanted}", (answer.status, answer.body), (200, b"hacked=1"))
        check(f"for {wanted}", answer.fields["content-disposition"].split(";")[0], "attachment")
    for wanted in ("script", "style", "worker", "serviceworker", "object", "iframe", "xslt", ""):
        for name in ("payload", "result"):
            check_problem(gateway.get(target.replace("payload", name), token=None, Cookie=cookie,
                                      Sec_Fetch_Site="same-origin", Sec_Fetch_Dest=wanted), 403,
                          "denied")


def try_guesses(gateway, cookie):
    name, text = cookie.split("=")
    for guess in ("", "x", text[:-1], text + "A", text[:20] + "_" + text[21:], "A" * 6000,
                  text.swapcase(), gateway.first_token):
        told = check_problem(gateway.get("/v1/session", token=None, Cookie=f"{name}={guess}"), 401,
                             "not-authenticated")
        assert gateway.first_token not in told["detail"]
    for field in (f"{name}={text}; {name}={text}", f"x{name}={text}", name, "=", ";"):
        check_problem(gateway.get("/v1/session", token=None, Cookie=field), 401, "not-authenticated")
    # A wrong token beside a good cookie is a wrong token.
    check_problem(gateway.get("/v1/session", token="tmq_x", Cookie=cookie), 401, "not-authenticated")


def try_ends(gateway):
    _, cookie = log_in(gateway)
    left = gateway.ask("DELETE", "/v1/session", token=None, Cookie=cookie, **SAME)
    check("left", (left.status, "Max-Age=0" in left.fields["set-cookie"]), (204, True))
    check_problem(gateway.get("/v1/session", token=None, Cookie=cookie), 401, "not-authenticated")
    token = gateway.make_token("ann", "client")
    gateway.reload()
    _, cookie = log_in(gateway, token)
    _, other = log_in(gateway)
    of_other = submit(gateway, {"queue": "q"})
    check("its role", gateway.get("/v1/stats", token=None, Cookie=cookie).status, 403)
    check_problem(gateway.get(f"/v1/tasks/{of_other}", token=None, Cookie=cookie), 404, "not-found")
    gateway.kill()
    gateway.start()
    check("it outlives the gateway", gateway.get("/v1/session", token=None, Cookie=cookie).status, 200)
    check("remove", gateway.run("token", "remove", "ann").returncode, 0)
    gateway.reload()
    check_problem(gateway.get("/v1/session", token=None, Cookie=cookie), 401, "not-authenticated")
    # A new token of the same name does not bring the sessions of the old one back.
    gateway.make_token("ann", "client")
    gateway.reload()
    check_problem(gateway.get("/v1/session", token=None, Cookie=cookie), 401, "not-authenticated")
    os.remove(gateway.path("gateway.key"))
    gateway.stop()
    gateway.start()
    check_problem(gateway.get("/v1/session", token=None, Cookie=other), 401, "not-authenticated")


def try_links(gateway):
    printed = gateway.run("link")
    check("link", printed.returncode, 0)
    match = re.fullmatch(rf"http://127\.0\.0\.1:{gateway.port}/ui#ticket=(tmqt_[\w-]+)\n",
                         printed.stdout)
    ticket = match.group(1)
    check_problem(gateway.get("/v1/session", token=ticket), 401, "not-authenticated")
    check_problem(gateway.get("/v1/tasks", token=ticket), 401, "not-authenticated")
    _, cookie = log_in(gateway, ticket)
    check("in", gateway.get("/v1/session", token=None, Cookie=cookie).status, 200)
    check_problem(gateway.post("/v1/session", token=ticket), 401, "not-authenticated")
    check_problem(gateway.get("/v1/session", token=None,
                              Cookie=f"{cookie.split('=')[0]}={ticket[5:]}"), 401, "not-authenticated")
    check("of whom", gateway.run("link", "nobody").returncode, 1)
    with open(gateway.log_path, encoding="utf-8") as file:
        assert ticket not in file.read()


def try_over(gateway):
    answer, cookie = log_in(gateway)
    check("seconds", "Max-Age=1;" in answer.fields["set-cookie"], True)
    told = eventually("it is over", lambda: gateway.get("/v1/session", token=None, Cookie=cookie).json
                      .get("detail"))
    check("told", told, "the session is over: log in again")


def main():
    with Broker() as broker:
        with Gateway(broker, configuration=["failures_max = 1000"]) as gateway:
            try_files(gateway)
            try_kinds()
            cookie = try_session(gateway)
            try_forgery(gateway, cookie)
            try_bytes(gateway, cookie)
            try_guesses(gateway, cookie)
            try_links(gateway)
            try_ends(gateway)
        check("no gateway, no link", gateway.run("link").returncode, 1)
        with Gateway(broker, configuration=["session_timeout = 1s"]) as gateway:
            try_over(gateway)
        behind = ["behind_proxy = yes", "host = tasks.example"]
        with Gateway(broker, configuration=behind) as gateway:
            answer, cookie = log_in(gateway)
            assert cookie.startswith("__Host-tmq_session_"), cookie
            assert answer.fields["set-cookie"].endswith("; Secure"), answer
            assert gateway.run("link").stdout.startswith("https://tasks.example/ui#ticket="), "link"
        with Gateway(broker, "--insecure-no-auth") as gateway:
            answer = gateway.post("/v1/session", token=None)
            check("nobody", (answer.json["by"], "set-cookie" in answer.fields), ("nothing", False))


if __name__ == "__main__":
    main()
