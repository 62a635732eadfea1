/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The parts of MCP that need no broker: files of tools, tasks as they are shown, sessions. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/policy.h"
#include "mcp/render.h"
#include "mcp/session.h"
#include "mcp/tools.h"

#define INPUT "\"inputSchema\":{\"type\":\"object\"}"
#define TOOL(more, ours)                                                                           \
    "{\"tools\":[{\"name\":\"t\"," INPUT more ",\"taskmq\":{\"queue\":\"q\"" ours "}}]}"

static void test_a_file_of_tools (void **state)
{
    static const char text[] =
        "{\"instructions\":\"i\",\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\","
        "\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}}},"
        "\"execution\":{\"taskSupport\":\"required\"},\"_meta\":{\"x\":1},\"taskmq\":{\"queue\":"
        "\"q\",\"ttl\":\"2h\",\"ttl_max\":\"1h\",\"lease\":\"5s\",\"attempts\":7,\"backoff\":"
        "\"2s\","
        "\"priority\":3,\"poll\":\"3s\",\"inline\":\"0\",\"wait_max\":\"1m\",\"payload\":"
        "\"params\","
        "\"dedup\":\"arguments\",\"labels\":{\"k\":\"v\"},\"roles\":[\"operator\"],"
        "\"requires\":{\"sampling\":{}},\"ask\":{\"s\":{\"method\":\"m\",\"params\":{}}}}}]}";
    char error[TOOLS_ERROR_SIZE] = "";
    (void) state;
    tools_t *tools = tools_parse (text, strlen (text), error);
    if (tools == NULL)
        fail_msg ("%s", error);
    assert_int_equal (tools->count, 1);
    assert_string_equal (tools->instructions, "i");
    assert_true (tools->private);
    assert_null (tools_find (tools, "a", ROLE_CLIENT));
    assert_null (tools_find (tools, "b", ROLE_OPERATOR));
    const tool_t *tool = tools_find (tools, "a", ROLE_OPERATOR | ROLE_CLIENT);
    assert_non_null (tool);
    assert_int_equal (tool->support, TASK_REQUIRED);
    assert_null (strstr (tool->shown, "execution"));
    assert_non_null (strstr (tool->shown_25, "execution"));
    assert_null (strstr (tool->shown_25, "taskmq"));
    assert_string_equal (tool->headers[0].field, "mcp-param-region");
    assert_string_equal (tool->submit.queue, "q");
    assert_int_equal (tool->submit.ttl_ms, 7200000);
    assert_int_equal (tool->ttl_max_ms, 7200000);
    assert_int_equal (tool->submit.lease_ms, 5000);
    assert_int_equal (tool->submit.max_attempts, 7);
    assert_int_equal (tool->submit.backoff_ms, 2000);
    assert_int_equal (tool->submit.priority, 3);
    assert_int_equal (tool->submit.poll_interval_ms, 3000);
    assert_int_equal (tool->inline_ms, 0);
    assert_int_equal (tool->wait_max_ms, 60000);
    assert_true (tool->whole_params && tool->dedup);
    assert_string_equal (tool->labels[0].value, "v");
    assert_non_null (tool->asks);
    assert_non_null (tool->needs);
    tools_release (tools_retain (tools));
    tools_release (tools);
}

static void test_each_mistake_is_told (void **state)
{
    static const char *const bad[][2] = {
        {"{", "line 1: it is no JSON"},
        {"[]", "it is no object"},
        {"{\"tools\":[],\"tools\":[]}", "duplicate"},
        {"{\"tool\":[]}", "there is no member 'tool'"},
        {"{\"tools\":{}}", "tools is an array"},
        {"{\"tools\":[{}]}", "tool 1 has no name"},
        {"{\"tools\":[{\"name\":\"a b\"}]}", "tool 1 has no name"},
        {"{\"tools\":[{\"name\":\"t\"," INPUT "}]}", "tool 't': it has no member 'taskmq'"},
        {"{\"tools\":[{\"name\":\"t\"," INPUT ",\"taskmq\":{}}]}", "taskmq.queue is missing"},
        {"{\"tools\":[{\"name\":\"t\",\"taskmq\":{\"queue\":\"q\"}}]}", "inputSchema is an object"},
        {TOOL ("", ",\"queues\":1"), "tool 't': there is no member taskmq.queues"},
        {TOOL (",\"color\":1", ""), "a tool has no member 'color'"},
        {TOOL (",\"title\":1", ""), "title is a text"},
        {TOOL (",\"outputSchema\":{\"type\":1}", ""), "outputSchema #: type is"},
        {TOOL (",\"execution\":{\"taskSupport\":\"maybe\"}", ""), "execution.taskSupport is"},
        {TOOL (",\"execution\":{\"tasks\":\"optional\"}", ""),
         "there is no member execution.tasks"},
        {TOOL ("", ",\"ttl\":5"), "taskmq.ttl: it is no text"},
        {TOOL ("", ",\"ttl\":\"5 sec\""), "taskmq.ttl: "},
        {TOOL ("", ",\"ttl\":\"1s\""), "taskmq.ttl is between 60000"},
        {TOOL ("", ",\"priority\":256"), "taskmq.priority is a whole number, 0 to 255"},
        {TOOL ("", ",\"attempts\":0"), "taskmq.attempts is a whole number, 1 to 1000"},
        {TOOL ("", ",\"labels\":{\"gw.tool\":\"x\"}"), "'gw.tool' is no name of ours to give"},
        {TOOL ("", ",\"payload\":\"all\""), "taskmq.payload is \"arguments\" or \"params\""},
        {TOOL ("", ",\"dedup\":true"), "taskmq.dedup is \"none\" or \"arguments\""},
        {TOOL ("", ",\"roles\":[\"king\"]"), "taskmq.roles is an array of roles"},
        {TOOL ("", ",\"ask\":{\"k\":{}}"), "taskmq.ask: 'k' is no"},
        {TOOL ("", ",\"requires\":[]"), "taskmq.requires is an object of objects"},
        {TOOL ("", ",\"says\":7"), "taskmq.says is a text of at most 1024 bytes"},
        {"{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":"
         "{\"type\":\"number\",\"x-mcp-header\":\"A\"}}},\"taskmq\":{\"queue\":\"q\"}}]}",
         "which is no string, integer or boolean"},
        {"{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":"
         "{\"type\":\"string\",\"x-mcp-header\":\"A b\"}}},\"taskmq\":{\"queue\":\"q\"}}]}",
         "x-mcp-header of 'a' is no name"},
        {"{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"$ref\":\"http://x/\"},"
         "\"taskmq\":{\"queue\":\"q\"}}]}",
         "leads out of the document"},
        {"{\"tools\":[{\"name\":\"t\"," INPUT
         ",\"taskmq\":{\"queue\":\"q\"}},{\"name\":\"t\"," INPUT ",\"taskmq\":{\"queue\":\"q\"}}]}",
         "two tools have the name 't'"},
    };
    char error[TOOLS_ERROR_SIZE];
    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error[0] = '\0';
        tools_t *tools = tools_parse (bad[i][0], strlen (bad[i][0]), error);
        if (tools != NULL || strstr (error, bad[i][1]) == NULL)
            fail_msg ("%s: '%s', not '%s'", bad[i][0], error, bad[i][1]);
    }
}

/* Tasks. */

static tmq_task_t ended (tmq_status_t status, const char *type, const char *body)
{
    tmq_task_t task = {.status = status,
                       .ns = "default",
                       .result_type = type,
                       .body = body,
                       .body_bytes = strlen (body),
                       .result_bytes = strlen (body),
                       .status_message = "",
                       .error_message = "it broke",
                       .error_data = "",
                       .cancel_message = "",
                       .created_at = 1000,
                       .updated_at = 2000,
                       .poll_interval_ms = 1000};
    tmq_id_parse (&task.id, "01a2007e-d6c2-7f5e-8f1f-c21cce16b92e");
    return task;
}

static void assert_outcome (tmq_task_t task, era_t era, bool related, const char *wanted)
{
    bytes_t out = BYTES_INIT;
    json_writer_t writer = {&out, false};
    assert_true (render_outcome (&writer, &task, era, related, NULL));
    assert_string_equal (bytes_text (&out), wanted);
    bytes_free (&out);
}

#define SERVER                                                                                     \
    "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"taskmq-gateway\",\"version\":\"0.1.0\"}"
#define MODERN "\"resultType\":\"complete\",\"_meta\":{" SERVER "}"

static void test_outcomes (void **state)
{
    (void) state;
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "text/plain", "hi"), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "text/plain", "hi"), ERA_2026, false,
                    "\"result\":{" MODERN ",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "application/json", "{\"a\":1}"), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}],"
                    "\"structuredContent\":{\"a\":1}}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "application/json", "[1]"), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"}]}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "image/png", "abc"), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"image\",\"data\":\"YWJj\",\"mimeType\":"
                    "\"image/png\"}]}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, "application/zip", "abc"), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":"
                    "\"taskmq://default/tasks/01a2007e-d6c2-7f5e-8f1f-c21cce16b92e/result\","
                    "\"mimeType\":\"application/zip\",\"blob\":\"YWJj\"}}]}");
    assert_outcome (ended (TMQ_STATUS_FAILED, "", ""), ERA_2025, false,
                    "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"it broke\"}],"
                    "\"isError\":true}");
    assert_outcome (ended (TMQ_STATUS_CANCELLED, "", ""), ERA_2026, false,
                    "\"error\":{\"code\":-33273,\"message\":\"the task was cancelled\"}");
    tmq_task_t task = ended (TMQ_STATUS_FAILED, "", "");
    task.error_code = -32603;
    task.error_data = "{\"a\": 1}";
    assert_outcome (task, ERA_2026, false,
                    "\"error\":{\"code\":-32603,\"message\":\"it broke\",\"data\":{\"a\":1}}");
    assert_string_equal (render_status (&task, ERA_2026), "failed");
    task.error_code = 1;
    assert_string_equal (render_status (&task, ERA_2026), "completed");
    assert_string_equal (render_status (&task, ERA_2025), "failed");
}

/* Numbers and their order stay as the worker wrote them. */
static void test_results_of_mcp_stay_as_they_are (void **state)
{
    (void) state;
    assert_outcome (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{ \"z\": 1.50, \"a\": 1e3 }"),
                    ERA_2025, false, "\"result\":{\"z\":1.50,\"a\":1e3}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{\"z\":1.50}"), ERA_2026, false,
                    "\"result\":{" MODERN ",\"z\":1.50}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{}"), ERA_2026, false,
                    "\"result\":{" MODERN "}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{\"_meta\":{\"k\":1}}"), ERA_2025,
                    true,
                    "\"result\":{\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":"
                    "\"01a2007e-d6c2-7f5e-8f1f-c21cce16b92e\"},\"k\":1}}");
    assert_outcome (ended (TMQ_STATUS_FAILED, RESULT_TYPE, "{\"content\":[]}"), ERA_2025, false,
                    "\"result\":{\"content\":[],\"isError\":true}");
    assert_outcome (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "[1]"), ERA_2025, false,
                    "\"error\":{\"code\":-32603,\"message\":\"the worker's result is no JSON "
                    "object\"}");
}

#define UNFIT "The tool's result does not fit its outputSchema:\\n"

/* What is to fit; the lines that say why it does not, or NULL. */
static void assert_judged (tmq_task_t task, const char *unfit)
{
    char error[SCHEMA_ERROR_SIZE];
    json_t *document = json_loads ("{\"type\":\"object\",\"required\":[\"a\"]}", 0, NULL);
    schema_t *schema = schema_new (document, error);
    for (int related = 0; related < 2; related++) {
        bytes_t out = BYTES_INIT;
        json_writer_t writer = {&out, false};
        const bool good = render_outcome (&writer, &task, ERA_2025, related != 0, schema);
        assert_int_equal (good, unfit == NULL);
        assert_int_equal (strstr (bytes_text (&out), UNFIT) != NULL, unfit != NULL);
        if (unfit != NULL) {
            assert_non_null (strstr (bytes_text (&out), unfit));
            assert_non_null (strstr (bytes_text (&out), "\"isError\":true"));
            assert_null (strstr (bytes_text (&out), "structuredContent\":"));
        }
        assert_int_equal (strstr (bytes_text (&out), "related-task") != NULL, related);
        bytes_free (&out);
    }
    schema_free (&schema);
    json_decref (document);
}

static void test_results_fit_what_their_tool_promises (void **state)
{
    (void) state;
    assert_judged (ended (TMQ_STATUS_COMPLETED, "application/json", "{\"a\":1}"), NULL);
    assert_judged (ended (TMQ_STATUS_COMPLETED, "application/json", "{}"), "(the whole): has no a");
    assert_judged (ended (TMQ_STATUS_COMPLETED, "application/json", "[1]"), "is not of type");
    assert_judged (ended (TMQ_STATUS_COMPLETED, "application/json", "{"), "that can be read");
    assert_judged (ended (TMQ_STATUS_COMPLETED, "text/plain", "{\"a\":1}"), "that can be read");
    assert_judged (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE,
                          "{\"content\":[],\"structuredContent\":{\"a\":1}}"),
                   NULL);
    assert_judged (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE,
                          "{\"content\":[],\"structuredContent\":{\"b\":1}}"),
                   "has no a");
    assert_judged (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{\"content\":[]}"),
                   "that can be read");
    assert_judged (ended (TMQ_STATUS_COMPLETED, RESULT_TYPE, "{\"isError\":true}"), NULL);
    tmq_task_t task = ended (TMQ_STATUS_COMPLETED, "application/json", "");
    task.result_bytes = task.result_blob.bytes = 1000000;
    assert_judged (task, "it has 1000000 bytes, which no answer holds");
}

/* What a client may see decides whether it hears of a change. */
static void test_the_digest_of_tools (void **state)
{
    static const char *const texts[] = {
        TOOL ("", ""),
        TOOL ("", ",\"ttl\":\"2h\""),
        TOOL (",\"title\":\"T\"", ""),
        TOOL (",\"execution\":{\"taskSupport\":\"optional\"}", ""),
        TOOL (",\"outputSchema\":{\"type\":\"array\"}", ""),
        TOOL (",\"title\":\"T\"", ",\"roles\":[\"operator\"]"),
    };
    enum { COUNT = sizeof texts / sizeof *texts };
    char digests[COUNT][2][TOOLS_DIGEST_SIZE];
    char error[TOOLS_ERROR_SIZE];
    (void) state;
    for (size_t i = 0; i < COUNT; i++) {
        tools_t *tools = tools_parse (texts[i], strlen (texts[i]), error);
        assert_non_null (tools);
        tools_digest (digests[i][0], tools, ROLE_CLIENT);
        tools_digest (digests[i][1], tools, ROLE_OPERATOR);
        tools_release (tools);
    }
    assert_string_equal (digests[0][0], digests[1][0]); /* what is ours is not seen */
    for (size_t i = 2; i < COUNT; i++)
        assert_string_not_equal (digests[0][0], digests[i][0]);
    assert_string_equal (digests[2][1], digests[5][1]);
    assert_string_not_equal (digests[2][0], digests[5][0]);
}

/* Those of 2025 know outputs that are objects only. */
static void test_outputs_that_2025_is_shown (void **state)
{
    static const char array[] = TOOL (",\"outputSchema\":{\"type\":\"array\"}", "");
    static const char object[] = TOOL (",\"outputSchema\":{\"type\":\"object\"}", "");
    char error[TOOLS_ERROR_SIZE];
    (void) state;
    tools_t *tools = tools_parse (array, strlen (array), error);
    assert_non_null (strstr (tools->list[0].shown, "outputSchema"));
    assert_null (strstr (tools->list[0].shown_25, "outputSchema"));
    tools_release (tools);
    tools = tools_parse (object, strlen (object), error);
    assert_non_null (strstr (tools->list[0].shown_25, "outputSchema"));
    tools_release (tools);
}

/* Sessions. */

static void test_sessions (void **state)
{
    static mcp_sessions_t all;
    account_t *ann = account_new ();
    account_t *bob = account_new ();
    static const uint8_t secret[SEAL_KEY_BYTES] = {1};
    mcp_session_t session = {.version = "2025-11-25", .principal = "ann", .capabilities = 5};
    mcp_session_t found;
    bytes_t text = BYTES_INIT;
    seal_t seal;
    (void) state;
    assert_true (ann != NULL && bob != NULL);
    mcp_sessions_init (&all);
    seal_init (&seal, secret);
    mcp_session_make (&session);
    assert_true (mcp_session_seal (&session, &seal, &text, 1000));
    const char *id = bytes_text (&text);
    assert_true (mcp_session_open (&found, &all, &seal, id, "ann", 2000));
    assert_string_equal (found.id, session.id);
    assert_string_equal (found.version, "2025-11-25");
    assert_int_equal (found.capabilities, 5);
    assert_false (mcp_session_open (&found, &all, &seal, id, "bob", 2000));
    assert_false (mcp_session_open (&found, &all, &seal, "x", "ann", 2000));
    assert_false (mcp_session_open (&found, &all, &seal, id, "ann", 1000 + MCP_SESSION_MS));
    assert_int_equal (mcp_session_level (&all, &session), 8);
    mcp_session_set_level (&all, &session, ann, level_parse ("warning"));
    assert_int_equal (mcp_session_level (&all, &session), 3);
    mcp_session_set_level (&all, &session, ann, level_parse ("debug"));
    assert_int_equal (mcp_session_level (&all, &session), 0);
    assert_int_equal (all.levels.count, 1);
    mcp_session_end (&all, &session, ann);
    assert_false (mcp_session_open (&found, &all, &seal, id, "ann", 2000));
    /* However many others end, or ask for a log, it stays so … */
    mcp_session_t other = session;
    for (size_t i = 0; i < MCP_SESSIONS_ENDED_MAX + 10; i++) {
        mcp_session_make (&other);
        mcp_session_end (&all, &other, bob);
        mcp_session_set_level (&all, &other, bob, 1);
    }
    assert_false (mcp_session_open (&found, &all, &seal, id, "ann", 2000));
    assert_int_equal (mcp_session_level (&all, &session), 0);
    assert_int_equal (mcp_session_level (&all, &other), 1);
    assert_int_equal (ann->held[HOLD_ENDED], 1);
    assert_int_equal (bob->held[HOLD_ENDED], MCP_SESSIONS_ENDED_MAX - 1);
    assert_int_equal (bob->held[HOLD_LEVELS], MCP_SESSION_LEVELS_MAX - 1);
    /* … until there is no room for those of its own. */
    for (size_t i = 0; i < MCP_SESSIONS_ENDED_MAX / 2; i++) {
        mcp_session_make (&other);
        mcp_session_end (&all, &other, ann);
    }
    assert_true (mcp_session_open (&found, &all, &seal, id, "ann", 2000));
    assert_int_equal (ann->held[HOLD_ENDED], MCP_SESSIONS_ENDED_MAX / 2);
    mcp_sessions_clear (&all);
    assert_int_equal (ann->held[HOLD_ENDED] + bob->held[HOLD_ENDED] + bob->held[HOLD_LEVELS], 0);
    account_release (ann);
    account_release (bob);
    bytes_free (&text);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_a_file_of_tools),
                                       cmocka_unit_test (test_each_mistake_is_told),
                                       cmocka_unit_test (test_outcomes),
                                       cmocka_unit_test (test_results_of_mcp_stay_as_they_are),
                                       cmocka_unit_test (test_results_fit_what_their_tool_promises),
                                       cmocka_unit_test (test_the_digest_of_tools),
                                       cmocka_unit_test (test_outputs_that_2025_is_shown),
                                       cmocka_unit_test (test_sessions)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
