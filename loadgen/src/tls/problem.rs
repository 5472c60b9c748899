//! What can go wrong with TLS, in one clear line each.

use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::error::Trouble;

pub fn closed_in_handshake() -> io::Error {
    Trouble::io("closed in the middle of the TLS handshake", "", "")
}

pub fn no_tls(seen: &str) -> io::Error {
    Trouble::io("the server speaks no TLS on this port", seen, "with http:// it may answer")
}

pub fn told(problem: &TlsError) -> io::Error {
    match problem {
        TlsError::InvalidCertificate(problem) => certificate(problem),
        TlsError::AlertReceived(alert) => {
            Trouble::io(format!("TLS alert from the server: {alert:?}"), "", alert_hint(*alert))
        }
        TlsError::NoApplicationProtocol => Trouble::io(
            "TLS alert from the server: NoApplicationProtocol",
            "",
            alert_hint(AlertDescription::NoApplicationProtocol),
        ),
        other => Trouble::io("TLS went wrong", other.to_string(), ""),
    }
}

fn alert_hint(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::NoApplicationProtocol => "it does not speak HTTP/1.1",
        AlertDescription::ProtocolVersion => "it speaks neither TLS 1.2 nor 1.3",
        AlertDescription::HandshakeFailure => {
            "it shares no cipher suite, has a key that is none of RSA, P-256, P-384 and Ed25519, or wants a \
                certificate of the client, which has none"
        }
        AlertDescription::CertificateRequired => "it wants a certificate of the client, which has none",
        AlertDescription::UnrecognisedName => "it does not know the host of the URL",
        _ => "",
    }
}

fn certificate(problem: &CertificateError) -> io::Error {
    match problem {
        CertificateError::UnknownIssuer => Trouble::io(
            "the server's certificate has an unknown issuer",
            "",
            "--ca-file FILE names its authority, --insecure accepts any",
        ),
        CertificateError::Expired => Trouble::io("the server's certificate has expired", "", ""),
        CertificateError::ExpiredContext { not_after, .. } => Trouble::io(
            "the server's certificate has expired",
            format!("on {}", utc(*not_after)),
            "--insecure accepts it",
        ),
        CertificateError::NotValidYet => Trouble::io("the server's certificate is not valid yet", "", ""),
        CertificateError::NotValidYetContext { not_before, .. } => {
            let seen = format!("it will be on {}", utc(*not_before));
            Trouble::io("the server's certificate is not valid yet", seen, "--insecure accepts it")
        }
        CertificateError::NotValidForName => {
            Trouble::io("the server's certificate is for another name", "", "")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            let seen = format!("it is for {names}, not for {}", expected.to_str());
            Trouble::io("the server's certificate is for another name", seen, "")
        }
        CertificateError::BadSignature => Trouble::io(
            "the server's certificate was signed by another authority of the same name",
            "",
            "--ca-file FILE names that one, --insecure accepts any",
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => Trouble::io(
            "the server's certificate has a signature that cannot be checked",
            "",
            "those by keys of RSA, P-256, P-384 and Ed25519 can; --insecure accepts any",
        ),
        CertificateError::BadEncoding => Trouble::io("the server's certificate cannot be read", "", ""),
        // What `openssl req -x509` makes is an authority's certificate and a server's in one.
        CertificateError::Other(cause) if cause.to_string() == "CaUsedAsEndEntity" => Trouble::io(
            "the server's certificate is self-signed, and of no authority that is trusted",
            "",
            "--ca-file FILE names that certificate, --insecure accepts any",
        ),
        other => Trouble::io(
            "the server's certificate is not accepted",
            other.to_string(),
            "--ca-file FILE names one to trust, --insecure accepts any",
        ),
    }
}

/// `DnsName("localhost")` → `localhost`
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

fn utc(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| format!("second {seconds}"), |utc| utc.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_by_a_key_that_nobody_here_can_check_is_told_with_those_that_can() {
        let problem = CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: Vec::new(),
            public_key_algorithm_id: Vec::new(),
        };
        let told = told(&TlsError::InvalidCertificate(problem)).to_string();
        assert!(told.contains("cannot be checked; those by keys of RSA, P-256, P-384 and Ed25519"), "{told}");
    }
}
