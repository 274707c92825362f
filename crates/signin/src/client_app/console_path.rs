//! The paths of the console.

/// The path of the console, below the public URL.
pub const CONSOLE_PATH: &str = "/console";
/// The redirect path of its sign-ins, below the public URL.
pub const CONSOLE_RETURN: &str = "/console/signin";
