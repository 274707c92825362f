//! The UserInfo endpoint (OpenID Connect Core 1.0, section 5.3): claims about the person of an access token.

use chancery_auth::Claims;
use chancery_oauth::{OPENID, Use, check_use};
use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_store::Mode;
use serde_json::{Value, json};

use crate::{
    claims::{self, Issuance},
    grant::Grant,
    person,
    provider::Provider,
};

/// The error for an access token without the scope `openid`.
pub const LACKS_OPENID: &str = "The access token was not granted the scope openid.";

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserInfoRefusal {
    /// The token is not a person's, or its grant has ended.
    InvalidToken,
    /// The token lacks the scope `openid`.
    InsufficientScope,
    /// The client app has an unsupported setting.
    NotServed(&'static str),
}

impl Provider<'_> {
    /// The claims for an access token with verified signature and binding.
    pub async fn userinfo(
        self,
        claims: &Claims,
        now: Timestamp,
        epoch: i64,
    ) -> Result<Result<Value, UserInfoRefusal>, Problem> {
        let Some(grant) = claims.gid else { return Ok(Err(UserInfoRefusal::InvalidToken)) };
        let scope = claims.scope.clone().unwrap_or_default();
        if !scope.split(' ').any(|word| word == OPENID) {
            return Ok(Err(UserInfoRefusal::InsufficientScope));
        }
        let application = self.applications.find_at(self.store, claims.client_id, epoch).await?;
        let Some(application) = application else {
            return Ok(Err(UserInfoRefusal::InvalidToken));
        };
        let mut used = [Use::Person, Use::UserInfo].into_iter();
        if let Some(refusal) =
            used.find_map(|used_at| check_use(&application.unsupported_settings, used_at).err())
        {
            return Ok(Err(UserInfoRefusal::NotServed(refusal.detail)));
        }
        let (person, master) = (claims.sub, self.context.master.clone());
        let reading = self.store.run("UserInfo", Mode::Quick, None, move |tx| {
            let Some(grant) = Grant::find(tx, &master, grant)? else { return Ok(None) };
            let granted = &grant.granted;
            let serves = application.serving(granted.tenant, granted.issuing).is_some();
            if granted.person != person || grant.application != application.id || !serves {
                return Ok(None);
            }
            let identity = granted.identity();
            let Ok(admitted) = person::admit(tx, &application, identity, granted.tenant, now)? else {
                return Ok(None);
            };
            claims::at_userinfo(tx, &application, granted, &scope, &admitted)
        });
        let mut released = match reading.await? {
            None => return Ok(Err(UserInfoRefusal::InvalidToken)),
            Some(Issuance::Done(released)) => released.userinfo,
            Some(Issuance::Rules(rules)) => self.run_claim_rules(*rules, now).await?.userinfo,
        };
        released.insert("sub".to_owned(), json!(person));
        Ok(Ok(Value::Object(released)))
    }
}
