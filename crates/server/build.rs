//! Finds the commit that the program is built from, which `chancery --version` and the metric `chancery_build_info` report.
//!
//! `CHANCERY_COMMIT` overrides it, such as for a source archive without a repository. Otherwise a release build asks git. A
//! development build has none, because otherwise each commit would compile the server and all tests again.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Reported if the commit is unknown.
const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CHANCERY_COMMIT");
    let given = env::var("CHANCERY_COMMIT").ok().and_then(|given| first_word(&given));
    let commit = given.or_else(|| {
        if env::var("PROFILE").is_ok_and(|profile| profile == "release") { of_git() } else { None }
    });
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit.as_deref().unwrap_or(UNKNOWN));
}

fn first_word(text: &str) -> Option<String> {
    text.split_whitespace().next().map(str::to_owned)
}

/// The commit of the repository whose root is this workspace, followed by `-dirty` if the working tree differs from it.
fn of_git() -> Option<String> {
    let workspace = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../..").canonicalize().ok()?;
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&workspace).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
    };
    // an archive may be unpacked within another repository
    if Path::new(git(&["rev-parse", "--show-toplevel"])?.trim()).canonicalize().ok()? != workspace {
        return None;
    }
    let reference = git(&["symbolic-ref", "-q", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", reference.trim()] {
        let file = git(&["rev-parse", "--git-path", name]).map(|file| workspace.join(file.trim()));
        // cargo treats a missing file as changed in each build
        if let Some(file) = file.filter(|file| file.is_file()) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    for name in ["Cargo.toml", "Cargo.lock", "crates", "migrations"] {
        println!("cargo::rerun-if-changed={}", workspace.join(name).display());
    }
    first_word(&git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])?)
}
