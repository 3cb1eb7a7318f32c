# The provider room. Small data of our own; recordings are read by integration/provider_fixture.
foreach(name message sse tools_render)
  barchan_unit_test(${name} test_${name}.c)
endforeach()
barchan_unit_test(replay test_replay.c)
target_compile_definitions(test_replay PRIVATE TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/provider")
foreach(name anthropic anthropic_answers openai_chat openai_calls openai_requests openai_responses gemini
  provider_turns provider_requests history piece)
  barchan_unit_test(${name} test_${name}.c ${PROJECT_SOURCE_DIR}/tests/support/adapter_run.c
    ${PROJECT_SOURCE_DIR}/tests/support/adapter_view.c)
endforeach()
barchan_unit_test(quirks test_quirks.c ${PROJECT_SOURCE_DIR}/tests/support/adapter_run.c)
target_compile_definitions(test_quirks PRIVATE TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data/provider")

# Each curl option in turn is refused.
barchan_unit_test(http_options test_http_options.c)
target_link_options(test_http_options PRIVATE -Wl,--wrap=curl_easy_setopt)

barchan_unit_test(alloc test_alloc.c ${PROJECT_SOURCE_DIR}/tests/support/adapter_run.c)
target_link_options(test_alloc PRIVATE
  -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)

barchan_unit_test(http_alloc test_http_alloc.c)
target_link_options(test_http_alloc PRIVATE
  -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc)
