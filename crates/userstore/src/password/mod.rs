//! Passwords: set, reset and changed; counting the attempts at them.

mod attempt;
pub mod change_at_sign_in;
pub mod mail;
pub mod reset_by_mail;
mod set;
pub mod sign_in;
mod stored_hash;
mod token;

use chancery_record::{OPEN, TextRule, Timestamp, record, secret_types};
use chancery_resource::{Action as A, Body, BodyForm, Custom, Method as M, Op, Permit, Purpose, Reply};

use crate::user::USER;

pub use chancery_mail::{MailState, mail_state};

pub use attempt::{by_login, count_for_unknown_user, record_failure, write_for_unknown_user};
pub use set::{HashOutcome, hashing_work, options, put_new};
pub use stored_hash::is_set;
pub use token::Redeemed;

const PASSWORD: TextRule = TextRule {
    name: "Password",
    min: 1,
    max: 1024,
    format: Some("password"),
    example: "four lively grey herons",
    shape: |_| Ok(None),
    ..TextRule::PLAIN
};
const TOKEN: TextRule = TextRule { name: "ResetToken", example: "6fGsnZkqRlW0m2yFvK1o7Q", ..PASSWORD };

secret_types! {
    /// A password in a body. The store's policy defines its strength.
    Password(&PASSWORD);
    /// A token that resets a password, in a body.
    ResetToken(&TOKEN);
}

record! {
    /// An initial password, which the user must change.
    pub struct InitialPassword {
        /// The password.
        password: Password = OPEN,
        /// Time until which the password is valid. Without it, the store's option InitialPasswordExpiration applies.
        password_expiration: Option<Timestamp> = OPEN,
    }
}

record! {
    /// A new password.
    pub struct ResetPassword {
        /// The password.
        new_password: Password = OPEN,
    }
}

record! {
    /// A new password, with the old one as proof.
    pub struct ChangePassword {
        /// The current password.
        #[de("Aktuelles Kennwort")]
        old_password: Password = OPEN,
        /// The new password.
        new_password: Password = OPEN,
    }
}

record! {
    /// A new password, with a reset token as proof.
    pub struct ResetPasswordWithToken {
        /// The reset token that was sent.
        token: ResetToken = OPEN,
        /// The new password.
        new_password: Password = OPEN,
    }
}

static INITIAL: BodyForm = BodyForm::of::<InitialPassword>("InitialPassword");
static RESET: BodyForm = BodyForm::of::<ResetPassword>("ResetPassword");
static CHANGE: BodyForm = BodyForm::of::<ChangePassword>("ChangePassword");
static WITH_TOKEN: BodyForm = BodyForm::of::<ResetPasswordWithToken>("ResetPasswordWithToken");

const fn op(name: &'static str, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, M::Post, path, Permit::UserStore, &USER, A::Custom(custom), summary)
}

const fn public(name: &'static str, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    let custom = custom.replying(Reply::Empty);
    Op::new(name, M::Post, path, Permit::Public, &USER, A::Custom(custom), summary)
}

/// The operations on passwords.
pub static OPERATIONS: &[Op] = &[
    op(
        "SetInitialPassword",
        "/administration/User/{userId}/password/initial",
        Custom::working(Purpose::Password, set::initial).taking(Body::Form(&INITIAL)),
        "Sets a password that the user must change.",
    ),
    op(
        "ResetInitialPasswordExpiration",
        "/administration/User/{userId}/password/initial/reset",
        Custom::writing(set::extend_initial),
        "Restarts the full validity period of an initial password.",
    )
    .sensitive(),
    op(
        "ResetPassword",
        "/administration/User/{userId}/password/reset",
        Custom::working(Purpose::Password, set::reset).taking(Body::Form(&RESET)),
        "Sets a password, unlocks the user and resets the counters of failed sign-ins.",
    ),
    op(
        "SendPasswordResetEmail",
        "/administration/User/{userId}/password/reset/sendresetemail",
        Custom::writing(token::send_mail),
        "Sends the user an e-mail with a single-use token for setting a new password.",
    ),
    op(
        "ResetPasswordTokenRequest",
        "/administration/User/{userId}/password/reset/request",
        Custom::writing(token::request),
        "Creates a single-use token for setting a new password and has it delivered.",
    ),
    op(
        "ResetPasswordTokenResponse",
        "/administration/User/{userId}/password/reset/response",
        Custom::working(Purpose::Password, token::redeem).taking(Body::Form(&WITH_TOKEN)),
        "Sets a password. The reset token is required as proof.",
    ),
    op(
        "ChangePassword",
        "/administration/User/{userId}/password/change",
        Custom::working(Purpose::Password, attempt::change).taking(Body::Form(&CHANGE)),
        "Sets a password. The old password is required as proof.",
    ),
    public(
        "ChangePasswordPublic",
        "/PublicAdmin/user/loginname/{loginName}/password/change",
        Custom::working(Purpose::Password, attempt::change).taking(Body::Form(&CHANGE)),
        "Sets one's own password. The old password is required as proof.",
    ),
    public(
        "ResetPasswordTokenResponsePublic",
        "/PublicAdmin/user/loginname/{loginname}/password/reset/response",
        Custom::working(Purpose::Password, token::redeem).taking(Body::Form(&WITH_TOKEN)),
        "Sets one's own password. The reset token is required as proof.",
    ),
];
