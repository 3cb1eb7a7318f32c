# The parsers of what servers and models send. Their sources are compiled here once more, with the
# fuzzer's instrumentation.
set(core ${PROJECT_SOURCE_DIR}/core)
set(adapter_run ${PROJECT_SOURCE_DIR}/tests/support/adapter_run.c)
set(base_sources)
foreach(name buf error json_scan json_view json_write utf8)
  list(APPEND base_sources ${core}/base/${name}.c)
endforeach()
set(provider_sources ${base_sources} fixed_random.c)
foreach(name anthropic anthropic_block anthropic_delta anthropic_mixed anthropic_request error_map gemini gemini_parts gemini_partial
        gemini_request json_out message message_parts
        openai_chat openai_chat_calls openai_chat_details openai_chat_labels openai_chat_request openai_chat_turn
        openai_responses openai_responses_items openai_responses_request openai_responses_turn openai_tools pairing piece
        provider reply reply_json secret sse text tools_render)
  list(APPEND provider_sources ${core}/provider/${name}.c)
endforeach()

barchan_fuzz_target(json json fuzz_json.c ${base_sources})
barchan_fuzz_target(sse sse fuzz_sse.c ${provider_sources})
barchan_fuzz_target(request request fuzz_request.c ${provider_sources})
barchan_fuzz_target(anthropic anthropic fuzz_adapter.c ${adapter_run} ${provider_sources})
barchan_fuzz_target(openai_chat openai_chat fuzz_adapter.c ${adapter_run} ${provider_sources})
barchan_fuzz_target(openai_responses openai_responses fuzz_adapter.c ${adapter_run} ${provider_sources})
barchan_fuzz_target(gemini gemini fuzz_adapter.c ${adapter_run} ${provider_sources})
target_compile_definitions(fuzz_gemini PRIVATE ADAPTER=bc_provider_gemini)
target_compile_definitions(fuzz_openai_responses PRIVATE ADAPTER=bc_provider_openai_responses)
target_compile_definitions(fuzz_anthropic PRIVATE ADAPTER=bc_provider_anthropic)
target_compile_definitions(fuzz_openai_chat PRIVATE ADAPTER=bc_provider_openai)
