//! Names that the platform keeps for itself.

/// The installation's own client app, the only one that may be named where tokens are asked for.
pub const ROOT: &str = "root";
/// The audience of both services.
pub const MANAGEMENT_AUDIENCE: &str = "PlatformManagementService";
/// The audience of the user store service alone.
pub const USER_STORE_AUDIENCE: &str = "PlatformUserStoreService";
/// The resources of the platform, which every client app may ask for.
pub const PLATFORM: [&str; 2] = [MANAGEMENT_AUDIENCE, USER_STORE_AUDIENCE];
