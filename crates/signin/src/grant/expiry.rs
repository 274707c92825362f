//! When grants and their refresh tokens expire.

use chancery_record::Timestamp;
use chancery_resource::{
    StoreError, Tx,
    settings::{Options, TenantOption},
};

use super::Grant;
use crate::{client_app::Application, session::session_expiry};

/// When the last token of a grant that is used now expires.
pub fn grant_expiry(
    grant: &Grant,
    application: &Application,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Timestamp {
    let access_token = now.plus(options.get(TenantOption::ACCESS_TOKEN_LIFETIME));
    if grant.granted.has_refresh_token(application) {
        access_token.max(expiry_after_use(grant, options, now))
    } else {
        access_token
    }
}

/// When a refresh token with this last use expires, limited by the lifetime of the grant.
fn expiry_after_use(grant: &Grant, options: &Options<TenantOption>, used_on: Timestamp) -> Timestamp {
    let longest = grant.started_on.plus(options.get(TenantOption::REFRESH_TOKEN_ABSOLUTE_LIFETIME));
    used_on.plus(options.get(TenantOption::REFRESH_TOKEN_LIFETIME)).min(longest)
}

/// When the refresh token of a grant expires; `None` once it has. Without `offline_access` it ends with the session.
pub fn refresh_token_expiry(
    tx: &mut Tx<'_>,
    grant: &Grant,
    application: &Application,
    options: &Options<TenantOption>,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    if !grant.granted.has_refresh_token(application) {
        return Ok(None);
    }
    let until = expiry_after_use(grant, options, grant.used_on);
    let until = match grant.granted.session {
        Some(session) if !grant.is_offline() => {
            session_expiry(tx, session, now)?.map(|session| session.min(until))
        }
        _ => Some(until),
    };
    Ok(until.filter(|until| *until > now))
}
