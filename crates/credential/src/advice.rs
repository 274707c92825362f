//! Advice on weak passwords, from zxcvbn's strength estimate.

use chancery_record::Secret;
use zxcvbn::{Score, zxcvbn};

use crate::PasswordOwner;

/// The longest password that is estimated, in characters. Weak ones are short, and the work
/// grows with the length: up to 0.1 s for a hostile password of this length, 1 s for one of 100.
const MAX_CHARACTERS: usize = 32;
/// The characters that are read of each of the person's names.
const MAX_NAME_CHARACTERS: usize = 100;

/// Advice on a weak password (the two lowest of zxcvbn's five scores), without any part of it. `None`: the
/// password is good or long, or there is no advice.
pub fn advice(password: &Secret, person: &PasswordOwner<'_>) -> Option<String> {
    let text = std::str::from_utf8(password.expose()).ok()?;
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        return None;
    }
    let names = [Some(person.login_name), person.email_address, person.first_name, person.last_name];
    let names: Vec<String> =
        names.into_iter().flatten().map(|name| name.chars().take(MAX_NAME_CHARACTERS).collect()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let estimate = zxcvbn(text, &names);
    if estimate.score() > Score::One {
        return None;
    }
    let feedback = estimate.feedback()?;
    let warning = feedback.warning().map(|warning| warning.to_string());
    let suggestions = feedback.suggestions().iter().map(ToString::to_string);
    let sentences: Vec<String> = warning.into_iter().chain(suggestions).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}
