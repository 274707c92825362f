//! Codes by SMS: the gateways of MFA instances, and their messages.

use chancery_mail::Language;
use chancery_record::{Secret, Value};
use chancery_resource::{Context, StoreError, TextMessage, Tx, open_secret, selectable};
use serde_json::json;
use uuid::Uuid;

selectable! {
    /// An SMS gateway.
    pub struct Gateway from "FROM idp_instance i \
        JOIN tenant_idp_instance l ON l.idp_instance_rid = i.rid JOIN tenant t ON t.rid = l.tenant_rid AND t.is_active \
        JOIN tenant_mfa_instance n ON n.tenant_rid = t.rid \
        JOIN mfa_instance f ON f.rid = n.mfa_instance_rid AND f.is_active AND f.idp_type = 'sms' \
        JOIN idp_type y ON y.id = f.idp_type_id AND y.is_active \
        JOIN option_value v ON v.apply_to_mfa_instance_id = f.id AND v.name = 'GatewayUrl' AND v.value <> '' \
        WHERE i.id = ?1 AND NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_mfa_instance_id = f.id \
        AND o.has_configuration_error) ORDER BY f.position, f.name_key, f.id LIMIT 1" {
        /// The MFA instance that it is an option of.
        pub instance: Uuid = "f.id",
        /// Its address.
        pub url: String = "v.value",
    }
}

selectable! {
    /// The option `GatewayToken` of an MFA instance.
    struct GatewayToken from "FROM option_value WHERE apply_to_mfa_instance_id = ?1 AND name = 'GatewayToken'" {
        option: Uuid = "id",
        value: String = "value",
    }
}

/// The purpose of a code.
#[derive(Clone, Copy)]
pub enum TextCode {
    /// A sign-in.
    SignIn,
    /// The verification of a telephone number.
    Number,
}

impl TextCode {
    /// The text with the code, in German or English.
    pub fn text(self, locale: Option<&str>, code: &str) -> String {
        let before = match (self, Language::of(locale)) {
            (Self::SignIn, Language::German) => "Ihr Anmeldecode",
            (Self::SignIn, Language::English) => "Your sign-in code",
            (Self::Number, Language::German) => "Ihr Bestätigungscode",
            (Self::Number, Language::English) => "Your verification code",
        };
        format!("{before}: {code}")
    }
}

impl Gateway {
    /// The gateway of a user store: that of the first usable MFA instance of type sms at a tenant of the store.
    pub fn of_store(tx: &mut Tx<'_>, store: Uuid) -> Result<Option<Self>, StoreError> {
        tx.one(Self::SELECT, &[store.into()], Self::read)
    }

    /// A text to a number, for a person with this language.
    ///
    /// # Errors
    /// `GatewayToken` cannot be decrypted.
    pub fn message(
        self,
        context: &Context,
        tx: &mut Tx<'_>,
        number: &str,
        locale: Option<&str>,
        text: &str,
    ) -> Result<TextMessage, StoreError> {
        let body = json!({ "id": context.new_id(), "to": number, "text": text, "locale": locale });
        let stored = tx.one(GatewayToken::SELECT, &[self.instance.into()], GatewayToken::read)?;
        let token = match stored.filter(|stored| !stored.value.is_empty()) {
            Some(GatewayToken { option, value }) => {
                let key = Value::Id(option);
                let opened = open_secret(&context.app.master, "option_value", "value", &key, &value);
                let undecryptable =
                    || StoreError::Internal("GatewayToken cannot be opened with this master key".into());
                Some(Secret::new(opened.ok_or_else(undecryptable)?))
            }
            None => None,
        };
        Ok(TextMessage { instance: self.instance, url: self.url, token, body: Secret::new(body.to_string()) })
    }
}
