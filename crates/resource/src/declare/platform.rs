//! Reserved names of the platform.

use uuid::Uuid;

/// The installation's own client app, the only one that requests to the token endpoint may call by its name.
pub const ROOT: &str = "root";
/// The client app of the console, the same in every installation.
pub const CONSOLE: Uuid = Uuid::from_u128(0x636f_6e73_6f6c_8000_8000_0000_0000_0001);
/// The audience of both services.
pub const MANAGEMENT_AUDIENCE: &str = "PlatformManagementService";
/// The audience of the user store service alone.
pub const USER_STORE_AUDIENCE: &str = "PlatformUserStoreService";
/// The resources (audiences) of the platform, which every client app may request.
pub const PLATFORM: [&str; 2] = [MANAGEMENT_AUDIENCE, USER_STORE_AUDIENCE];
