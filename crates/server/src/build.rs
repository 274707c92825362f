//! The version, the commit that the program was built from, and the version of the schema that it creates.

use std::sync::LazyLock;

use chancery_store::schema_version;

/// The release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, followed by `-dirty` if the working tree differed from it; `unknown` in development builds and outside of git.
pub const COMMIT: &str = env!("BUILD_COMMIT");

/// All three as text.
pub fn described() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| format!("{VERSION} (commit {COMMIT}, schema {})", schema_version()));
    &TEXT
}
