//! Links the tests at fixed addresses: each test is a process of its own, which has 3 % less to do without relocating the program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-tests=-no-pie");
    }
}
