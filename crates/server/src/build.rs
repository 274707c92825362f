//! What this program is: its version, the commit that it was built from, and the schema that it creates.

use std::sync::LazyLock;

use chancery_store::schema_version;

/// The release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, with `-dirty` where files differed from it; `unknown` in builds for development and outside of git.
pub const COMMIT: &str = env!("BUILD_COMMIT");

/// All of it, for people.
pub fn described() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| format!("{VERSION} (commit {COMMIT}, schema {})", schema_version()));
    &TEXT
}
