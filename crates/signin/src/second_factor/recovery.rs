//! Recovery codes: a substitute for an authenticator that is not available.

use chancery_credential::typed::read_code;
use chancery_resource::{Context, MasterKey, StateTable, StoreError, Tx, random};
use uuid::Uuid;

/// How many codes a set has.
const CODES: usize = 10;
/// The number of characters of a code: 50 bits.
const LENGTH: usize = 10;
/// Letters and digits that are not mistaken for one another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

fn digest(master: &MasterKey, person: Uuid, typed: &str) -> Vec<u8> {
    let typed: String = read_code(typed).chars().filter(char::is_ascii_alphanumeric).collect();
    master.digest(&format!("recovery-code/{person}"), typed.as_bytes())
}

fn new_code() -> String {
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().map_or('A', char::from);
    let letters: String = random::<LENGTH>().iter().map(letter).collect();
    let (first, second) = letters.split_at(LENGTH / 2);
    format!("{first}-{second}")
}

/// Creates the recovery codes of an authenticator, which are shown once.
pub fn make(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    factor: Uuid,
) -> Result<Vec<String>, StoreError> {
    let codes: Vec<String> = (0..CODES).map(|_| new_code()).collect();
    for code in &codes {
        let digest = digest(&context.app.master, person, code);
        let text =
            StateTable::RecoveryCode.insert("(digest, person_id, second_factor_id) VALUES (?1, ?2, ?3)");
        tx.queue(&text, vec![digest.into(), person.into(), factor.into()])?;
    }
    Ok(codes)
}

/// Deletes a used code. Returns the authenticator of this instance that it replaces, if it is correct.
pub fn use_code(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    instance: Uuid,
    typed: &str,
) -> Result<Option<Uuid>, StoreError> {
    let digest = digest(&context.app.master, person, typed);
    let text = StateTable::RecoveryCode.delete(
        "WHERE digest = ?1 AND second_factor_id IN (SELECT id FROM second_factor \
         WHERE person_id = ?2 AND mfa_instance_id = ?3) RETURNING second_factor_id",
    );
    tx.returning(&text, &[digest.into(), person.into(), instance.into()], |row| row.id(0))
}

#[cfg(test)]
mod tests {
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::{digest, new_code};

    #[test]
    fn a_recovery_code_is_accepted_in_any_form_from_its_person_only() {
        let (master, ann) = (MasterKey::generate(), Uuid::from_u128(1));
        let code = new_code();
        assert_eq!(code.len(), 11);
        let plain = code.replace('-', " ").to_lowercase();
        assert_eq!(digest(&master, ann, &code), digest(&master, ann, &plain));
        let wide: String =
            code.chars().map(|letter| char::from_u32(u32::from(letter) + 0xFEE0).unwrap()).collect();
        assert_eq!(digest(&master, ann, &code), digest(&master, ann, &wide));
        assert_ne!(digest(&master, ann, &code), digest(&master, Uuid::from_u128(2), &code));
    }
}
