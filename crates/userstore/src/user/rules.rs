//! A user's own rules: pure functions.

use chancery_resource::{Findings, ProvidedFields, Rules};

use super::User;

impl Rules for User {
    fn adjust(&mut self, was: Option<&Self>, provided: &ProvidedFields<'_, Self>) {
        // a missing value is not confirmed
        self.email_address_confirmed &= self.email_address.is_some();
        self.phone_number_confirmed &= self.phone_number.is_some();
        let Some(was) = was else { return };
        // the confirmation is of one address and does not carry over to another
        if self.email_address != was.email_address && !provided.contains(Self::EMAIL_ADDRESS_CONFIRMED) {
            self.email_address_confirmed = false;
        }
        if self.phone_number != was.phone_number && !provided.contains(Self::PHONE_NUMBER_CONFIRMED) {
            self.phone_number_confirmed = false;
        }
    }

    fn check(&self, wrong: &mut Findings) {
        if let (Some(from), Some(to)) = (self.user_valid_from, self.user_valid_to)
            && from > to
        {
            wrong.add(Self::USER_VALID_TO, "lies before userValidFrom");
        }
    }
}
