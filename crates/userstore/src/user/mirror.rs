//! The platform users that follow the users of a store.

use chancery_application::{APPLICATION_USER, ApplicationUser, Mirror};

use super::{USER, User};

/// The mirror of users.
pub static MIRROR: Mirror = Mirror {
    from: &USER,
    to: &APPLICATION_USER,
    fields: &[
        (User::FIRST_NAME.field(), ApplicationUser::FIRST_NAME.field()),
        (User::LAST_NAME.field(), ApplicationUser::LAST_NAME.field()),
        (User::EMAIL_ADDRESS.field(), ApplicationUser::EMAIL_ADDRESS.field()),
        (User::PICTURE.field(), ApplicationUser::PICTURE.field()),
    ],
    subscription: ApplicationUser::SUBSCRIPTION_ID.field(),
    instance: ApplicationUser::IDP_INSTANCE_ID.field(),
};
