//! Response types (OAuth 2.0 Multiple Response Type Encoding Practices 1.0).

/// A response type: the contents of the authorization response. `none` has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResponseType {
    /// Whether the response has a code.
    pub code: bool,
    /// Whether the response has an ID token.
    pub id_token: bool,
    /// Whether the response has an access token.
    pub token: bool,
}

impl ResponseType {
    /// All response types.
    pub const ALL: [Self; 8] = [
        Self { code: true, id_token: false, token: false },
        Self { code: true, id_token: true, token: false },
        Self { code: true, id_token: true, token: true },
        Self { code: true, id_token: false, token: true },
        Self { code: false, id_token: true, token: false },
        Self { code: false, id_token: true, token: true },
        Self { code: false, id_token: false, token: true },
        Self { code: false, id_token: false, token: false },
    ];

    /// The name, with sorted words.
    pub const fn name(self) -> &'static str {
        match (self.code, self.id_token, self.token) {
            (true, false, false) => "code",
            (true, true, false) => "code id_token",
            (true, true, true) => "code id_token token",
            (true, false, true) => "code token",
            (false, true, false) => "id_token",
            (false, true, true) => "id_token token",
            (false, false, true) => "token",
            (false, false, false) => "none",
        }
    }

    /// The response type with a name, whose words may be in any order (RFC 6749, section 3.1.1).
    pub fn named(name: &str) -> Option<Self> {
        let mut words: Vec<&str> = name.split(' ').collect();
        words.sort_unstable();
        let sorted = words.join(" ");
        Self::ALL.into_iter().find(|known| known.name() == sorted)
    }

    /// Whether the authorization response has a token. Then it must not be in a query, because queries get into logs and
    /// browser histories.
    pub const fn has_front_channel_token(self) -> bool {
        self.id_token || self.token
    }

    /// The response type of the known words of an unknown name: its sender expects the response in the mode of these.
    pub(crate) fn from_known_words(name: &str) -> Self {
        let has = |word: &str| name.split(' ').any(|own| own == word);
        Self { code: has("code"), id_token: has("id_token"), token: has("token") }
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseType;

    #[test]
    fn words_of_a_response_type_may_be_in_any_order() {
        for known in ResponseType::ALL {
            assert_eq!(ResponseType::named(known.name()), Some(known));
            let reversed: Vec<&str> = known.name().split(' ').rev().collect();
            assert_eq!(ResponseType::named(&reversed.join(" ")), Some(known));
        }
        for wrong in ["", " ", "code code", "none code", "Code", "code  token", "code,token", "code ", "saml"]
        {
            assert_eq!(ResponseType::named(wrong), None, "{wrong}");
        }
    }
}
