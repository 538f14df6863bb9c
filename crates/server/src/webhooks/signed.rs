//! Signatures of deliveries, as Standard Webhooks has them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// What a secret is.
pub(super) const HELP: &str = "a secret for webhooks is `whsec_` and the base64 of 24 to 64 bytes, which the receiver has as well: \
                               echo \"whsec_$(openssl rand -base64 32)\"";

/// A secret that a receiver shares.
pub(super) struct Secret(hmac::Key);

impl Secret {
    /// That of a variable.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim().strip_prefix("whsec_")?).ok()?;
        (24..=64).contains(&bytes.len()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The signature of a delivery that is sent at a time, in seconds since 1970.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// S-09: the example of the specification.
    #[test]
    fn s09_signatures_are_those_of_standard_webhooks() {
        let secret = Secret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        for bad in [
            "",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_c2hvcnQ=",
            "whsec_no base64 at all, that",
        ] {
            assert!(Secret::read(bad).is_none(), "{bad}");
        }
    }
}
