//! A user's own rules. Pure.

use chancery_resource::{ProvidedFields, Rules};

use super::User;

impl Rules for User {
    fn adjust(&mut self, was: Option<&Self>, provided: &ProvidedFields<'_>) {
        let Some(was) = was else { return };
        // a proof is of one address: it does not carry over to another
        if self.email_address != was.email_address && !provided.contains("email_address_confirmed") {
            self.email_address_confirmed = false;
        }
        if self.phone_number != was.phone_number && !provided.contains("phone_number_confirmed") {
            self.phone_number_confirmed = false;
        }
    }

    fn check(&self, wrong: &mut Vec<(&'static str, String)>) {
        if let (Some(from), Some(to)) = (self.user_valid_from, self.user_valid_to)
            && from > to
        {
            wrong.push(("user_valid_to", "lies before userValidFrom".into()));
        }
    }
}
