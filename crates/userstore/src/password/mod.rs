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
    /// A first password, which the user must change.
    pub struct InitialPassword {
        /// The password.
        password: Password = OPEN,
        /// Until when it serves; the store's option InitialPasswordExpiration says when it is missing.
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
    /// A new password, and the old one as the proof.
    pub struct ChangePassword {
        /// The password now.
        old_password: Password = OPEN,
        /// The password to be.
        new_password: Password = OPEN,
    }
}

record! {
    /// A new password, and a token as the proof.
    pub struct ResetPasswordWithToken {
        /// The token that was sent.
        token: ResetToken = OPEN,
        /// The password to be.
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
        "Lets an initial password serve for its whole time again.",
    )
    .sensitive(),
    op(
        "ResetPassword",
        "/administration/User/{userId}/password/reset",
        Custom::working(Purpose::Password, set::reset).taking(Body::Form(&RESET)),
        "Sets a password, unlocks the user and forgets failed sign-ins.",
    ),
    op(
        "SendPasswordResetEmail",
        "/administration/User/{userId}/password/reset/sendresetemail",
        Custom::writing(token::send_mail),
        "Mails the user a token that sets a new password, once.",
    ),
    op(
        "ResetPasswordTokenRequest",
        "/administration/User/{userId}/password/reset/request",
        Custom::writing(token::request),
        "Makes a token that sets a new password, once, and has it delivered.",
    ),
    op(
        "ResetPasswordTokenResponse",
        "/administration/User/{userId}/password/reset/response",
        Custom::working(Purpose::Password, token::redeem).taking(Body::Form(&WITH_TOKEN)),
        "Sets a password; the token is the proof.",
    ),
    op(
        "ChangePassword",
        "/administration/User/{userId}/password/change",
        Custom::working(Purpose::Password, attempt::change).taking(Body::Form(&CHANGE)),
        "Sets a password; the old one is the proof.",
    ),
    public(
        "ChangePasswordPublic",
        "/PublicAdmin/user/loginname/{loginName}/password/change",
        Custom::working(Purpose::Password, attempt::change).taking(Body::Form(&CHANGE)),
        "Sets one's own password; the old one is the proof.",
    ),
    public(
        "ResetPasswordTokenResponsePublic",
        "/PublicAdmin/user/loginname/{loginname}/password/reset/response",
        Custom::working(Purpose::Password, token::redeem).taking(Body::Form(&WITH_TOKEN)),
        "Sets one's own password; the token is the proof.",
    ),
];
