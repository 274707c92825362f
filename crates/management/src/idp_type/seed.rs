//! The built-in types.

use chancery_record::{Name, Record as _, Token, Value};
use chancery_resource::{Context, Problem, StoreError, Tx, insert, new_row};
use uuid::Uuid;

use super::{FactoryType, IDP_TYPE, IdpType, IdpTypeId};

const SEEDED: [FactoryType; 10] = [
    FactoryType::UserStore,
    FactoryType::OpenIdConnect,
    FactoryType::AdfsOAuth,
    FactoryType::Microsoft,
    FactoryType::Google,
    FactoryType::Facebook,
    FactoryType::Twitter,
    FactoryType::Email,
    FactoryType::Sms,
    FactoryType::Totp,
];

/// The id of a seeded type, the same in every installation: a UUID of version 8 (RFC 9562).
pub const fn id_of(factory: FactoryType) -> Uuid {
    Uuid::from_u128(0x0c4a_4ce7_0000_8000_8000_0000_0000_0000 + factory as u128 + 1)
}

/// Creates the types that are missing.
pub fn seed(context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
    let mut known = Vec::new();
    tx.query("SELECT id FROM idp_type WHERE is_seeded", &[], |row| {
        known.push(row.id(0)?);
        Ok(())
    })?;
    for factory in SEEDED.into_iter().filter(|factory| !known.contains(&id_of(*factory))) {
        let internal = |_| Problem::from(StoreError::Internal("a type's own name is not valid".into()));
        let Value::Text(token) = context.new_token() else { continue };
        let record = IdpType {
            id: IdpTypeId(id_of(factory)),
            name: Name::new(factory.name()).map_err(internal)?,
            provider_type: factory.provider(),
            factory_type: factory,
            is_active: true,
            is_seeded: true,
            concurrency_token: Token::new(token).map_err(internal)?,
        };
        insert(context, tx, &IDP_TYPE, None, &new_row(context, &IDP_TYPE, None, record.into_values())?)?;
    }
    Ok(())
}
