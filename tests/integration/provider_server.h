/* Models of a scenario of tests/support/byte_server.py, and their answers or errors. */
#ifndef TESTS_PROVIDER_SERVER_H
#define TESTS_PROVIDER_SERVER_H

#include <barchan/model.h>
#include "base/json_view.h"
#include "server_suite.h"

extern const char plain_request[], stream_request[];

/* The scenario's model; more may give other options. */
barchan_model *model_with(const char *scenario, const barchan_model_options *more);
/* The reply, which the caller owns; a failure fails the test. */
json_t *complete(barchan_model *model, const char *request);
/* The error of a request that must fail. */
barchan_error fail_with(const char *scenario, const char *request,
                        const barchan_model_options *more);
/* The reply's text, borrowed. */
const char *text_of(const json_t *reply);

#endif
