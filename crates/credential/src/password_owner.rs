//! The user of a password that is checked.

/// The user of the checked password.
#[derive(Clone, Copy)]
pub struct PasswordOwner<'a> {
    /// The login name.
    pub login_name: &'a str,
    /// The e-mail address.
    pub email_address: Option<&'a str>,
    /// The first name.
    pub first_name: Option<&'a str>,
    /// The last name.
    pub last_name: Option<&'a str>,
}
