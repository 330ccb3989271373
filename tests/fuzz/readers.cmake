# reader_<name>: the sources that read what fuzz_<name> is fed. run_fuzzers.sh counts which of their
# lines the checked-in corpus reaches, so that a branch without an input is seen.
set(reader_allocator_script
    simulator/allocator/allocator_script.cpp simulator/allocator/allocator_settings.cpp)
set(reader_check
    analysis/check/baseline.cpp analysis/check/check_file.cpp
    analysis/check/experiment.cpp analysis/check/experiment_fields.cpp
    analysis/check/json_places.cpp)
set(reader_cluster simulator/parallel/cluster_file.cpp)
set(reader_compressed base/compression.cpp base/gzip.cpp)
set(reader_config
    traces/models/config_decoder.cpp traces/models/config_gemma.cpp traces/models/config_head.cpp
    traces/models/config_language.cpp traces/models/config_llama.cpp traces/models/config_moe.cpp
    traces/models/config_neox.cpp traces/models/config_notes.cpp traces/models/config_phi3.cpp
    traces/models/config_reader.cpp traces/models/config_rotary.cpp traces/models/config_t5.cpp
    traces/models/config_vision.cpp)
set(reader_device
    simulator/cost/device_file.cpp base/json_builder.cpp base/json_parser.cpp
    base/json_reader.cpp)
set(reader_kineto
    importers/kineto.cpp importers/kineto_events.cpp importers/timeline_builder.cpp)
set(reader_memory_snapshot
    importers/memory_snapshot.cpp importers/pickle.cpp importers/pool_replay.cpp
    importers/snapshot_timeline.cpp importers/stack_text.cpp)
set(reader_nsys
    importers/gpu_names.cpp importers/nsys.cpp importers/nsys_phases.cpp
    importers/nsys_tables.cpp importers/sqlite_file.cpp importers/timeline_builder.cpp)
set(reader_run
    importers/gpu_names.cpp importers/run_file.cpp importers/run_timeline.cpp importers/stack_category.cpp
    importers/timeline_builder.cpp importers/timeline_window.cpp)
set(reader_plan simulator/plan_json_reader.cpp simulator/tensor_roles.cpp)
set(reader_timeline
    analysis/recording/recording.cpp analysis/recording/recording_json_reader.cpp)
set(reader_timed_steps cli/commands/timed_steps.cpp)
set(reader_trace_json
    traces/fill_reader.cpp traces/opaque_reader.cpp traces/recorded_calls.cpp
    traces/trace_json_reader.cpp)
set(reader_profile analysis/diff/profile_reader.cpp analysis/diff/report_profile.cpp)
set(reader_training_data profiler/data_file.cpp)
set(reader_session gui/session_text.cpp)
set(reader_window_script gui/script.cpp)
set(reader_window_settings gui/settings_text.cpp)

# What comes behind a reader, with inputs that it takes: none of their lines are counted.
set(reader_model "")  # the builders of models
set(corpus_model config)
set(reader_replay "")  # the kernels
