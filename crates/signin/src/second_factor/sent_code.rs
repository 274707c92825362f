//! Codes that are sent to a person by mail or SMS: as a second factor, or to confirm an address.

use chancery_credential::typed::read_code;
use chancery_flow::CodeKind;
use chancery_record::Secret;
use chancery_resource::settings::{FactorOption, UserStoreOption};
use chancery_resource::{Context, Problem, StateTable, StoreError, TextMessage, Tx, random};
use chancery_store::selectable;
use chancery_userstore::{
    password::mail::{CodeMail, Sender, send_code},
    sms::{Gateway, TextCode},
};
use uuid::Uuid;

use crate::{
    client_app::{Offered, OfferedFactor, OfferedStore},
    person::{Admitted, Contact},
};

/// The period in which sent codes are counted, in ms.
const COUNTED_MS: i64 = 3_600_000;
/// The maximum of codes in that period.
const MAX_SENT: i64 = 5;
/// The defaults without an MFA instance: the length of a code, its lifetime, its wrong attempts, and the interval
/// before another one, in ms.
const PLAIN: Bounds = Bounds { length: 6, lifetime_ms: 900_000, tries: 5, rest_ms: 30_000 };

/// The purpose of a code.
#[derive(Clone, Debug)]
pub enum Purpose {
    /// To prove a second factor.
    Factor(OfferedFactor),
    /// To confirm this e-mail address.
    Email(String),
}

/// The limits of a code.
struct Bounds {
    length: i64,
    lifetime_ms: i64,
    tries: i64,
    rest_ms: i64,
}

impl Purpose {
    fn name(&self) -> String {
        match self {
            Self::Factor(factor) => factor.id.to_string(),
            Self::Email(_) => "email-address".to_owned(),
        }
    }

    /// The context to which the digest of a code is bound.
    fn about(&self) -> String {
        match self {
            Self::Factor(_) => self.name(),
            Self::Email(address) => format!("{}/{address}", self.name()),
        }
    }

    fn bounds(&self) -> Bounds {
        match self {
            Self::Factor(factor) => Bounds {
                length: factor.digits(),
                lifetime_ms: factor.options.get(FactorOption::CODE_LIFETIME),
                tries: factor.options.get(FactorOption::MAX_ATTEMPTS),
                rest_ms: factor.options.get(FactorOption::RESEND_INTERVAL),
            },
            Self::Email(_) => PLAIN,
        }
    }

    /// Whether codes can be sent to people of this instance.
    pub fn can_be_sent(&self, offered: Offered<'_>) -> bool {
        match self {
            Self::Factor(factor) => factor.can_send(offered),
            Self::Email(_) => offered.store().is_some_and(|store| store.options.sends_mail()),
        }
    }

    /// How many digits a code has.
    pub fn digits(&self) -> i64 {
        self.bounds().length
    }
}

/// The destination of a code.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The e-mail address or telephone number.
    pub value: String,
    /// The language.
    pub locale: Option<String>,
}

impl Destination {
    /// The address or number in masked form, recognizable for its owner: its start, or its end.
    pub fn masked(&self) -> String {
        if let Some((name, domain)) = self.value.split_once('@') {
            return format!("{}…@{domain}", name.chars().next().unwrap_or('…'));
        }
        let start = self.value.char_indices().rev().nth(1).map_or(0, |(index, _)| index);
        format!("…{}", self.value.get(start..).unwrap_or_default())
    }
}

/// The destination of codes of this kind: the confirmed address or a verified contact; the confirmed number. For
/// external users these are the address and the number from a trusted provider.
pub fn destination(
    tx: &mut Tx<'_>,
    kind: CodeKind,
    admitted: &Admitted,
) -> Result<Option<Destination>, StoreError> {
    let Contact { email, is_email_confirmed, phone, locale } = &admitted.contact;
    let value = match kind {
        CodeKind::Totp => None,
        CodeKind::Sms => phone.clone(),
        CodeKind::Email => match email.clone().filter(|_| *is_email_confirmed) {
            Some(email) => Some(email),
            None => match &admitted.user {
                Some(user) => verified_contact(tx, user.user)?,
                None => None,
            },
        },
    };
    Ok(value.map(|value| Destination { value, locale: locale.clone() }))
}

fn verified_contact(tx: &mut Tx<'_>, user: i64) -> Result<Option<String>, StoreError> {
    let text = "SELECT value FROM security_contact WHERE user_rid = ?1 AND kind = 'Email' AND is_verified \
        ORDER BY rid LIMIT 1";
    tx.one(text, &[user.into()], |row| row.text(0).map(str::to_owned))
}

/// The result of a request for a code.
pub enum SendResult {
    /// A previous one is still valid.
    StillValid,
    /// One was queued as mail.
    Mailed,
    /// This text message is to be sent after the commit.
    Text(TextMessage),
    /// Another one is not due yet, or there were too many.
    TooMany,
}

fn digest(context: &Context, person: Uuid, purpose: &Purpose, code: &str) -> Vec<u8> {
    context.app.master.digest(&format!("one-time-code/{person}/{}", purpose.about()), code.as_bytes())
}

/// Uniformly random digits.
fn new_code(length: i64) -> String {
    let mut code = String::new();
    for _ in 0..length {
        // the bias of 2^64 values modulo ten is negligible
        code.push(char::from(b'0' + u8::try_from(u64::from_be_bytes(random::<8>()) % 10).unwrap_or(0)));
    }
    code
}

selectable! {
    /// The state of a person's code.
    struct CodeState from "FROM one_time_code WHERE person_id = ?1 AND purpose = ?2" {
        sent_on: i64 = "sent_on",
        sent: i64 = "sent",
        counted_from: i64 = "counted_from",
        is_good: bool = "valid_until > ?3 AND tries < ?4",
    }
}

/// The recipient of a code.
#[derive(Clone, Copy)]
pub struct CodeRecipient<'a> {
    /// The person.
    pub person: Uuid,
    /// The person's user at the store; of external users the person.
    pub user: Uuid,
    /// The destination.
    pub to: &'a Destination,
}

/// Sends a person a code if none is valid, or, if `resend`, another one.
pub fn send(
    context: &Context,
    tx: &mut Tx<'_>,
    purpose: &Purpose,
    store: Option<&OfferedStore>,
    recipient: CodeRecipient<'_>,
    resend: bool,
) -> Result<SendResult, Problem> {
    let CodeRecipient { person, user, to } = recipient;
    let (name, bounds, now) = (purpose.name(), purpose.bounds(), context.now.0);
    let parameters = [person.into(), name.as_str().into(), now.into(), bounds.tries.into()];
    let stored = tx.one(CodeState::SELECT, &parameters, CodeState::read)?;
    if stored.as_ref().is_some_and(|stored| stored.is_good && !resend) {
        return Ok(SendResult::StillValid);
    }
    let counted = stored.filter(|stored| now - stored.counted_from < COUNTED_MS);
    if counted.as_ref().is_some_and(|stored| stored.sent >= MAX_SENT || now - stored.sent_on < bounds.rest_ms)
    {
        return Ok(SendResult::TooMany);
    }
    let (sent, counted_from) = counted.map_or((1, now), |stored| (stored.sent + 1, stored.counted_from));
    let code = new_code(bounds.length);
    let until = context.now.plus(bounds.lifetime_ms);
    let text = StateTable::OneTimeCode.insert(
        "(person_id, purpose, digest, tries, sent_on, sent, counted_from, valid_until, expires_on) \
         VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (person_id, purpose) DO UPDATE SET \
         digest = ?3, tries = 0, sent_on = ?4, sent = ?5, counted_from = ?6, valid_until = ?7, expires_on = ?8",
    );
    let parameters = vec![
        person.into(),
        name.as_str().into(),
        digest(context, person, purpose, &code).into(),
        now.into(),
        sent.into(),
        counted_from.into(),
        until.0.into(),
        (now + COUNTED_MS).max(until.0).into(),
    ];
    tx.queue(&text, parameters)?;
    if let Purpose::Factor(factor) = purpose
        && factor.kind == CodeKind::Sms
    {
        let gateway =
            Gateway { instance: factor.id, url: factor.options.get(FactorOption::GATEWAY_URL).to_owned() };
        let text = TextCode::SignIn.text(to.locale.as_deref(), &code);
        let locale = to.locale.as_deref();
        return Ok(SendResult::Text(gateway.message(context, tx, to.value.as_str(), locale, &text)?));
    }
    let address = store.map_or("", |store| store.options.get(UserStoreOption::EMAIL_SENDER_ADDRESS));
    let of_store = Sender { mfa_instance: None, address };
    let sender = match purpose {
        Purpose::Factor(factor) => factor.mail_sender(store).unwrap_or(of_store),
        Purpose::Email(_) => of_store,
    };
    let mail = CodeMail {
        sender,
        user,
        confirms_address: matches!(purpose, Purpose::Email(_)),
        recipient: &to.value,
        locale: to.locale.clone(),
        code: &code,
        valid_until: until,
    };
    send_code(context, tx, mail)?;
    Ok(SendResult::Mailed)
}

/// Invalidates a code that was not delivered.
pub fn take_back(tx: &mut Tx<'_>, person: Uuid, purpose: &Purpose) -> Result<(), StoreError> {
    let text = StateTable::OneTimeCode
        .update("SET valid_until = 0, sent = sent - 1 WHERE person_id = ?1 AND purpose = ?2");
    tx.queue(&text, vec![person.into(), purpose.name().into()])
}

/// The result of a typed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeCheck {
    /// It is correct, and now used.
    Correct,
    /// It is wrong.
    Wrong,
    /// No code is valid: it has expired, or too many wrong ones were typed.
    NoValidCode,
}

/// Verifies a code. Wrong ones are counted, so the transaction has to be committed in any case.
pub fn verify(
    context: &Context,
    tx: &mut Tx<'_>,
    purpose: &Purpose,
    person: Uuid,
    typed: &str,
) -> Result<CodeCheck, StoreError> {
    let name = purpose.name();
    let text = StateTable::OneTimeCode.update(
        "SET tries = tries + 1 WHERE person_id = ?1 AND purpose = ?2 AND tries < ?3 AND valid_until > ?4 \
         RETURNING digest",
    );
    let parameters =
        [person.into(), name.as_str().into(), purpose.bounds().tries.into(), context.now.0.into()];
    let stored = tx.returning(&text, &parameters, |row| Ok(Secret::new(row.bytes(0)?)))?;
    let Some(stored) = stored else { return Ok(CodeCheck::NoValidCode) };
    if !stored.matches(&digest(context, person, purpose, &read_code(typed))) {
        return Ok(CodeCheck::Wrong);
    }
    // the row stays, since it counts how many were sent
    let text = StateTable::OneTimeCode.update("SET valid_until = 0 WHERE person_id = ?1 AND purpose = ?2");
    tx.queue(&text, vec![person.into(), name.as_str().into()])?;
    Ok(CodeCheck::Correct)
}

#[cfg(test)]
mod tests {
    use super::{Destination, new_code};

    #[test]
    fn addresses_and_numbers_are_masked() {
        let shown = |value: &str| Destination { value: value.to_owned(), locale: None }.masked();
        assert_eq!(shown("ann@example.com"), "a…@example.com");
        assert_eq!(shown("@example.com"), "…@example.com".replacen('…', "……", 1));
        assert_eq!(shown("+4940123456"), "…56");
        assert_eq!(shown("7"), "…7");
    }

    #[test]
    fn sent_codes_consist_of_digits() {
        for length in [4, 6, 12] {
            let code = new_code(length);
            assert!(
                code.len() == usize::try_from(length).unwrap()
                    && code.bytes().all(|byte| byte.is_ascii_digit())
            );
        }
    }
}
