#include <stdlib.h>
#include <barchan/model.h>
#include "base/json_scan.h"
#include "suite.h"

static const char tools[] = "[{\"name\":\"f\",\"description\":\"d\\u00e9\",\"parameters\":{"
                            "\"type\": \"object\",\"x\":0.10}},"
                            "{\"name\":\"g\"}]";
#define SCHEMA "{\"type\": \"object\",\"x\":0.10}"
#define NONE "{\"type\":\"object\",\"properties\":{}}"

START_TEST(no_tools_and_errors)
{
    static const char *const formats[] = {"neutral",   "anthropic", "openai",
                                          "responses", "gemini",    "mcp"};
    barchan_error e;
    char *json = NULL;
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(barchan_tools_render(formats[i], "[]", 2, &json, &e), 0);
        ck_assert_str_eq(json, "[]");
        free(json);
        static const char twice[] = "[{\"name\":\"f\"},{\"name\":\"f\"}]";
        ck_assert_int_eq(barchan_tools_render(formats[i], twice, sizeof twice - 1, &json, &e),
                         BARCHAN_EINVAL);
        ck_assert_ptr_nonnull(strstr(e.message, "render tools: tools[1]"));
        ck_assert_str_eq(e.where, "tools.render");
    }
}
END_TEST

START_TEST(every_form)
{
    static const char *const forms[][2] = {
        {"neutral", "[{\"name\":\"f\",\"description\":\"d\xC3\xA9\",\"parameters\":" SCHEMA "},"
                    "{\"name\":\"g\",\"parameters\":" NONE "}]"},
        {"anthropic", "[{\"name\":\"f\",\"description\":\"d\xC3\xA9\",\"input_schema\":" SCHEMA "},"
                      "{\"name\":\"g\",\"input_schema\":" NONE "}]"},
        {"openai",
         "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\xC3\xA9\","
         "\"parameters\":" SCHEMA
         "}},{\"type\":\"function\",\"function\":{\"name\":\"g\",\"parameters\":" NONE "}}]"},
        {"responses",
         "[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d\xC3\xA9\","
         "\"parameters\":" SCHEMA
         ",\"strict\":false},{\"type\":\"function\",\"name\":\"g\",\"parameters\":" NONE
         ",\"strict\":false}]"},
        {"gemini", "[{\"functionDeclarations\":[{\"name\":\"f\",\"description\":\"d\xC3\xA9\","
                   "\"parametersJsonSchema\":" SCHEMA
                   "},{\"name\":\"g\",\"parametersJsonSchema\":" NONE "}]}]"},
        {"mcp", "[{\"name\":\"f\",\"description\":\"d\xC3\xA9\",\"inputSchema\":" SCHEMA "},"
                "{\"name\":\"g\",\"inputSchema\":" NONE "}]"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *json = NULL;
        barchan_error err;
        int rc = barchan_tools_render(forms[i][0], tools, sizeof tools - 1, &json, &err);
        ck_assert_msg(rc == 0, "%s", rc < 0 ? err.message : "");
        ck_assert_str_eq(json, forms[i][1]);
        ck_assert_int_eq(bc_json_validate(json, strlen(json), NULL), 0);
        free(json);
        ck_assert_int_eq(barchan_tools_render(forms[i][0], "[]", 2, &json, NULL), 0);
        ck_assert_int_eq(bc_json_validate(json, strlen(json), NULL), 0);
        free(json);
    }
}
END_TEST

START_TEST(bad_tools_are_refused)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[1]",
                                      "[{}]",
                                      "[{\"name\":5}]",
                                      "[{\"name\":\"f\",\"parameters\":[]}]",
                                      "[{\"name\":\"f\"}",
                                      "[] []"};
    char *json = NULL;
    barchan_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(barchan_tools_render("mcp", bad[i], strlen(bad[i]), &json, &err) ==
                          BARCHAN_EINVAL,
                      "%s", bad[i]);
        ck_assert_int_eq(err.code, BARCHAN_EINVAL);
        ck_assert_ptr_null(json);
    }
    ck_assert_int_eq(barchan_tools_render("openia", "[]", 2, &json, &err), BARCHAN_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.message, "openia"));
    ck_assert_int_eq(barchan_tools_render(NULL, "[]", 2, &json, &err), BARCHAN_EINVAL);
}
END_TEST

UNIT_MAIN("tools_render", no_tools_and_errors, every_form, bad_tools_are_refused)
