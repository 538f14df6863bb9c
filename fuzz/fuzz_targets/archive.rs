#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_sim::fuzz::archive(data));
