/* Addresses that stand for names. */
#include "egress/names.h"
#include "channel/frame.h"
#include "suite.h"
#include <stdio.h>

static bc_names *names;

static void set_up(void)
{
    names = bc_names_create();
    ck_assert_ptr_nonnull(names);
}

static void tear_down(void)
{
    bc_names_destroy(names);
}

static uint32_t address_of(unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "h%u.example", number);
    return bc_names_address(names, name);
}

static bool is_name(uint32_t address, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "h%u.example", number);
    const char *found = bc_names_find(names, address);
    return found != NULL && strcmp(found, name) == 0;
}

START_TEST(a_name_keeps_its_address_and_has_it_alone)
{
    for (unsigned i = 0; i < BC_NAMES_MAX; i++) {
        uint32_t address = address_of(i);
        REQUIRE(address != 0 && address >> (32 - BC_NETWORK_NAMES_PREFIX) ==
                                    BC_NETWORK_NAMES >> (32 - BC_NETWORK_NAMES_PREFIX));
        REQUIRE(is_name(address, i) && address_of(i) == address);
        REQUIRE(i == 0 || is_name(address_of(i / 2), i / 2));
    }
}
END_TEST

START_TEST(no_other_address_has_a_name)
{
    uint32_t address = address_of(1);
    static const uint32_t others[] = {0, 1, BC_NETWORK_NAMES, UINT32_MAX, 0x7f000001};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_ptr_null(bc_names_find(names, others[i]));
    ck_assert_ptr_null(bc_names_find(names, address + 1));
    ck_assert_ptr_null(bc_names_find(names, address - 1));
    bc_names_hold(names, address + 1); /* nobody's: nothing happens */
    bc_names_release(names, address + 1);
    ck_assert(is_name(address, 1));
}
END_TEST

START_TEST(the_oldest_unused_gives_way)
{
    uint32_t held = address_of(0), next = address_of(1);
    bc_names_hold(names, held);
    bc_names_hold(names, held);
    bc_names_release(names, held);
    for (unsigned i = 2; i < BC_NAMES_MAX; i++)
        REQUIRE(address_of(i) != 0);
    ck_assert_uint_eq(address_of(BC_NAMES_MAX), next);
    ck_assert(is_name(held, 0) && is_name(next, BC_NAMES_MAX));
    /* What was given up has a new address, and is found by its old one no more. */
    ck_assert_uint_ne(address_of(1), next);
    ck_assert(is_name(next, BC_NAMES_MAX));
    /* A round of others leaves what is held. */
    for (unsigned i = 0; i < 3 * BC_NAMES_MAX; i++)
        REQUIRE(address_of(100000 + i) != held);
    ck_assert(is_name(held, 0));
    bc_names_release(names, held);
    bc_names_release(names, held); /* once too often */
    for (unsigned i = 0; i < 2 * BC_NAMES_MAX; i++)
        REQUIRE(address_of(200000 + i) != 0);
    ck_assert(!is_name(held, 0));
}
END_TEST

START_TEST(when_all_are_held_there_is_none)
{
    for (unsigned i = 0; i < BC_NAMES_MAX; i++)
        bc_names_hold(names, address_of(i));
    ck_assert_uint_eq(address_of(BC_NAMES_MAX), 0);
    bc_names_release(names, address_of(7));
    ck_assert_uint_ne(address_of(BC_NAMES_MAX), 0);
    bc_names_hold(names, address_of(BC_NAMES_MAX));
    ck_assert_uint_eq(address_of(BC_NAMES_MAX + 1), 0);
}
END_TEST

SUITE_MAIN("egress_names", set_up, tear_down, a_name_keeps_its_address_and_has_it_alone,
           no_other_address_has_a_name, the_oldest_unused_gives_way,
           when_all_are_held_there_is_none)
