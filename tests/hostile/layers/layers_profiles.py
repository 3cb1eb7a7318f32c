"""Rows P01 to P06: profiles, by the person who writes them."""
from layer import Layer

ENTRY = "core/egress/policy_entry.c"
POLICY = "core/egress/policy.c"
OPTIONS = "scripts/barchan/options.lua"
SECRET = "core/egress/secret.c"
MOUNTS = "core/sandbox/mounts.c"

LAYERS = [
    Layer("P01", "an entry with a star in its midst is malformed",
          [(ENTRY, "if (strchr(name, '*') != NULL) {", "if (0) {")],
          "unit/egress_entries", ["a_malformed_entry_is_named_and_corrected"]),
    Layer("P01", "a range has no bits behind its length",
          [(ENTRY, "if (has_host_bits(&out->net, out->prefix, &net)) {",
            "if (has_host_bits(&out->net, out->prefix, &net) && 0) {")],
          "unit/egress_entries", ["a_malformed_entry_is_named_and_corrected"]),
    Layer("P01", "not every address can be allowed", [(ENTRY, "if (out->prefix == 0 && allow) {", "if (0) {")],
          "unit/egress_entries", ["a_malformed_entry_is_named_and_corrected"]),
    Layer("P01", "a list has a most", [(POLICY, "if (n > BC_POLICY_MAX_ENTRIES) {", "if (0) {")],
          "unit/egress_entries", ["lists_have_a_most"]),
    Layer("P01", "what no entry speaks of is denied",
          [(POLICY, 'say(verdict, false, "not in the allow-list", "");',
            'say(verdict, true, "not in the allow-list", "");')],
          "unit/egress_policy", ["an_empty_list_denies_everything"]),
    Layer("P02", "unknown keys and wrong types are errors",
          [(OPTIONS, "local expected = spec[key]\n", "local expected = spec[key] or type(value)\n"),
           (OPTIONS, "if not matches(value, expected) then", "if false then")],
          "lua/suites", ["unknown_keys_are_errors_with_a_suggestion", "wrong_types_name_the_option"]),
    Layer("P02", "a limit has a least", [("core/sandbox/limits.c", "if (value == 0 || value >= least) return 0;",
                                          "if (err != NULL || value >= least) return 0;")],
          "sandbox/limits", ["limits_are_checked"]),
    Layer("P03", "a secret is not short", [(SECRET, "len < BARCHAN_SECRET_MIN_BYTES || ", "")],
          "sandbox/secret_profile", ["profiles_that_are_refused"]),
    Layer("P03", "a secret has no line's end",
          [(SECRET, "!is_printable(value, len) || value[0] == ' '", "value[0] == ' '")],
          "sandbox/secret_profile", ["profiles_that_are_refused"]),
    Layer("P03", "a secret has hosts",
          [(SECRET, "    if (count == 0) {\n", "    if (0) {\n")],
          "sandbox/secret_profile", ["profiles_that_are_refused"]),
    Layer("P04", "targets are where the storage is",
          [(MOUNTS, "if (!is_plain(m->target) || !is_target(m->target)) {", "if (0) {")],
          "sandbox/mounts", ["what_is_refused"]),
    Layer("P04", "a folder with a socket in it is not shown",
          [("core/guest/mounts_check.c", "if (rc == SOCKET) {", "if (0) {")],
          "sandbox/mounts", ["sockets"]),
    Layer("P06", "other lists hold for new connections",
          [("core/egress/rules.c", "    *book = fresh;\n    book->plan = old.plan;",
            "    book->plan = old.plan;\n    return 0;")],
          "sandbox/network_rules", ["other_lists_are_for_new_connections", "deny_can_be_added"]),
    Layer("P06", "lists need what was opened",
          [("core/egress/rules.c", "if (rc == 0) rc = check_plan(", "if (rc == 0 && err == NULL) rc = check_plan(")],
          "sandbox/network_rules", ["what_is_refused"]),
]
