#!/usr/bin/python3
# This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
# If a copy of the MPL was not distributed with this file, You can obtain one at
# https://mozilla.org/MPL/2.0/.

"""A worker's program for the tests of MCP: a payload of a tool's name and arguments on stdin, a
CallToolResult on stdout. Run by taskctl work for each task."""

import json
import os
import signal
import socket
import sys
import time

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

call = json.load(sys.stdin)
arguments = call.get("arguments") or {}
lines = socket.socket(fileno=int(os.environ["TASKMQ_FD"])).makefile("rw", encoding="utf-8")


def say(line):
    lines.write(line + "\n")
    lines.flush()


def give(*content, **more):
    json.dump({"content": list(content), **more}, sys.stdout)


def text(value):
    give({"type": "text", "text": value})


def elicit(message, properties, required=None):
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {"method": "elicitation/create",
            "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(prompt, tokens):
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {"method": "sampling/createMessage",
            "params": {"messages": [message], "maxTokens": tokens}}


NAME = elicit("What is your name?", {"name": {"type": "string"}}, ["name"])
ROOTS = {"method": "roots/list", "params": {}}


def ask(**questions):
    """All at once; the answers by their keys."""
    answers = {}
    for key, request in questions.items():
        say(f"ask {key} {json.dumps(request)}")
    while len(answers) < len(questions):
        line = lines.readline()
        if not line:
            sys.exit(75)
        word, *rest = line.rstrip("\n").split(" ", 2)
        if word == "answer":
            answers[rest[0]] = json.loads(rest[1])
    return answers


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(100)


def deleted(answer):
    return answer["action"] == "accept" and answer.get("content", {}).get("confirm")


def image():
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def slow():
    say("status computing")
    time.sleep(arguments.get("seconds", 0))
    text(f"done {arguments.get('label')}" + "." * arguments.get("dots", 0))


def progress():
    for done in (0, 50, 100):
        say(f"progress {done}/100 working")
        time.sleep(0.15)
    text("progressed")


def logging():
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        say("status " + line)
        time.sleep(0.15)
    text("logged")


def user_response():
    answer = ask(input=elicit(arguments.get("message", "?"), {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}},
        ["username", "email"]))["input"]
    text(f"User response: action={answer['action']}, content={json.dumps(answer.get('content'))}")


def defaults():
    answer = ask(input=elicit("Defaults", {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"],
                   "default": "active"},
        "verified": {"type": "boolean", "default": True}}))["input"]
    text(f"Elicitation completed: action={answer['action']}, "
         f"content={json.dumps(answer.get('content'))}")


def titled(what):
    return [{"const": f"value{i}", "title": f"{word} {what}"}
            for i, word in enumerate(("First", "Second", "Third"), 1)]


def enums():
    options = ["option1", "option2", "option3"]
    answer = ask(input=elicit("Enums", {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                       "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}}))["input"]
    text(f"Elicitation completed: action={answer['action']}")


def several_inputs():
    text(json.dumps(ask(user_name=NAME, greeting=sampling("Generate a greeting", 50),
                        client_roots=ROOTS)))


def rounds():
    first = ask(step1=NAME)
    second = ask(step2=elicit("Step 2: What is your favorite color?",
                              {"color": {"type": "string"}}, ["color"]))
    text(json.dumps([first, second]))


def by_capabilities():
    meta = json.loads(os.environ["TASKMQ_META"])
    can = meta["mcp"].get("capabilities", [])
    ask(**({"user_name": NAME} if "elicitation" in can else {}),
        **({"greeting": sampling("hi", 5)} if "sampling" in can else {}))
    text("ok")


def with_answers():
    answers = json.loads(os.environ["TASKMQ_META"])["mcp"]["inputResponses"]
    text(f"hello {answers['user_name']['content']['name']}")


def changed():
    """The file of tools is another one, and the gateway reads it."""
    with open("tools.json", encoding="utf-8") as file:
        tools = json.load(file)
    tools["tools"][0]["description"] += "."
    with open("tools.new", "w", encoding="utf-8") as file:
        json.dump(tools, file)
    os.rename("tools.new", "tools.json")
    with open(".taskmq/gateway.pid", encoding="utf-8") as file:
        os.kill(int(file.read()), signal.SIGHUP)
    text("changed")


def measure():
    """A result that was thought up by the caller."""
    json.dump(arguments["give"], sys.stdout)


def once():
    """Leaves a line for each time that it runs."""
    with open("runs", "a", encoding="utf-8") as file:
        file.write(arguments["label"] + "\n")
    time.sleep(arguments.get("seconds", 0))
    text("done " + arguments["label"])


OK = elicit("ok?", {"ok": {"type": "boolean"}}, ["ok"])
CONFIRM = {"confirm": {"type": "boolean"}}
TOOLS = {
    "greet": lambda: text(f"Hello, {arguments['name']}!"),
    "echo": lambda: text(json.dumps(call)),
    "x_header": lambda: text(f"region {arguments['region']}"),
    "slow_compute": slow,
    "work_in_steps": progress,
    "measure": measure,
    "list_sizes": measure,
    "test_trigger_tool_change": changed,
    "once": once,
    "failing_job": lambda: (time.sleep(1), fail("the job failed")),
    "confirm_delete": lambda: text("deleted" if deleted(ask(confirm=elicit(
        f"Delete {arguments.get('filename')}?", CONFIRM, ["confirm"]))["confirm"]) else "kept"),
    "multi_input": lambda: text(json.dumps(ask(first=NAME, second=NAME))),
    "test_tool_with_task": with_answers,
    "test_simple_text": lambda: text("This is a simple text response for testing."),
    "test_image_content": lambda: give(image()),
    "test_audio_content": lambda: give({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": lambda: give({"type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain",
        "text": "This is an embedded resource content."}}),
    "test_multiple_content_types": lambda: give(
        {"type": "text", "text": "Multiple content types test:"}, image(),
        {"type": "resource", "resource": {"uri": "test://mixed-content-resource",
                                          "mimeType": "application/json",
                                          "text": '{"test":"data","value":123}'}}),
    "test_tool_with_logging": logging,
    "test_logging_tool": lambda: (say("status a log line"), time.sleep(0.15), text("logged")),
    "test_error_handling": lambda: fail("This tool intentionally returns an error for testing"),
    "test_tool_with_progress": progress,
    "test_sampling": lambda: text("LLM response: " + ask(
        sample=sampling(arguments.get("prompt", ""), 100))["sample"]["content"]["text"]),
    "test_elicitation": user_response,
    "test_elicitation_sep1034_defaults": defaults,
    "test_elicitation_sep1330_enums": enums,
    "test_reconnection": lambda: (time.sleep(0.6),
                                  text("Reconnection test completed successfully.")),
    "test_streaming_elicitation": lambda: (ask(user_name=NAME), text("ok")),
    "test_input_required_result_elicitation": lambda: text(
        f"Hello, {ask(user_name=NAME)['user_name'].get('content', {}).get('name')}!"),
    "test_input_required_result_sampling": lambda: text(json.dumps(ask(
        capital_question=sampling("What is the capital of France?", 100))["capital_question"])),
    "test_input_required_result_list_roots": lambda: text(json.dumps(ask(
        client_roots=ROOTS)["client_roots"])),
    "test_input_required_result_request_state": lambda: (ask(confirm=OK), text("state-ok")),
    "test_input_required_result_multiple_inputs": several_inputs,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_tampered_state": lambda: (ask(confirm=OK), text("ok")),
    "test_input_required_result_capabilities": by_capabilities,
}

TOOLS.get(call["name"], lambda: text("ok"))()
