//! Any text is a filter or is refused with a column; never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(problem) = chancery_resource::parse_filter(text) {
        assert!(problem.detail.contains("column"));
    }
});
