//! The URL under test: its parts as scripts see them, and its addresses.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use crate::args::Addresses;
use crate::endpoint::{Endpoint, Endpoints};
use crate::error::Error;
use crate::probe::probe;
use crate::tell;
use crate::tls::TlsClient;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    pub scheme: String,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    /// As typed; none if the URL has none.
    pub port: Option<String>,
    /// With the query.
    pub path: String,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::Failed(format!("invalid URL: {url}: {why}"));
        let no_scheme = || invalid("no scheme; example: http://127.0.0.1:8080/");
        if url.starts_with("unix:") || url.starts_with('/') {
            return Err(invalid(
                "no host; a Unix socket is --unix-socket PATH, beside a URL such as http://localhost/",
            ));
        }
        if !url.contains("://") {
            return Err(no_scheme());
        }
        let uri: http::Uri = url.parse().map_err(|problem| match is_bare_ipv6(url) {
            true => invalid("an IPv6 address stands in brackets: http://[::1]:8080/"),
            false => invalid(&format!("{problem}")),
        })?;
        let scheme = uri.scheme_str().ok_or_else(no_scheme)?;
        match scheme {
            "http" | "https" => {}
            _ => return Err(invalid("the scheme must be http or https")),
        }
        let authority = uri.authority().ok_or_else(|| invalid("no host"))?;
        if authority.as_str().contains('@') {
            return Err(invalid(
                "user names in URLs are not supported; send them with -H \"Authorization: …\"",
            ));
        }
        let behind_host = &authority.as_str()[authority.host().len()..];
        if !behind_host.is_empty() && authority.port_u16().is_none() {
            return Err(invalid("the port is not a number up to 65535"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            url: url.to_owned(),
            scheme: scheme.to_owned(),
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port().map(|port| port.as_str().to_owned()),
            path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
        })
    }

    /// What name services look up: the port, or the scheme without one.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }

    /// However both are written: a host in capitals, the scheme's own port.
    pub fn is_same_server(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.host.eq_ignore_ascii_case(&other.host)
            && port(self.service()) == port(other.service())
    }

    /// The Host header of a request that sets none itself.
    pub fn host_header(&self) -> String {
        host_and_port(&self.host, self.port.as_deref())
    }

    /// The addresses of the host, in the order in which they are tried.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        let found = lookup(&self.host, self.service()).map_err(|problem| self.unreachable(&problem))?;
        if found.is_empty() {
            Err(self.unreachable("no address found"))
        } else {
            Ok(found.into_iter().map(Endpoint::Tcp).collect())
        }
    }

    /// Of these the first that accepts a connection, with https its handshake too; or all that do.
    pub fn reachable(
        &self,
        endpoints: Vec<Endpoint>,
        which: Addresses,
        tls: Option<&TlsClient>,
        timeout: Duration,
    ) -> Result<Endpoints, Error> {
        let (mut open, mut problems, tried) = (Vec::new(), Vec::new(), endpoints.len());
        for endpoint in endpoints {
            match probe(&endpoint, tls, timeout) {
                Ok(()) => open.push(endpoint),
                Err(problem) => problems.push((endpoint, problem)),
            }
            if which == Addresses::First && !open.is_empty() {
                break;
            }
        }
        match problems.last() {
            Some((Endpoint::Unix(path), problem)) if open.is_empty() => {
                Err(Error::Failed(format!("unable to connect to {}: {problem}", path.display())))
            }
            Some((_, problem)) if open.is_empty() => Err(self.unreachable(&problem.to_string())),
            _ => {
                for (endpoint, problem) in &problems {
                    tell_left_out(which, &self.host, endpoint, tried, &problem.to_string());
                }
                Ok(open.into())
            }
        }
    }

    fn unreachable(&self, problem: &str) -> Error {
        let server = host_and_port(&self.host, Some(self.service()));
        Error::Failed(format!("unable to connect to {server} {problem}"))
    }
}

/// Where all addresses are to be loaded; that the first alone is, of those that answer, is no news.
pub fn tell_left_out(which: Addresses, host: &str, left_out: &Endpoint, tried: usize, why: &str) {
    if which == Addresses::All {
        tell!("note: {left_out}, one of {tried} addresses of {host}, is left out: {why}");
    }
}

pub fn host_and_port(host: &str, port: Option<&str>) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    port.map_or(host.clone(), |port| format!("{host}:{port}"))
}

/// Two colons in a row behind the scheme, and no bracket.
fn is_bare_ipv6(url: &str) -> bool {
    let authority = url.split('/').nth(2).unwrap_or_default();
    authority.contains("::") && !authority.contains('[')
}

fn port(service: &str) -> Option<u16> {
    match service {
        "http" => Some(80),
        "https" => Some(443),
        _ => service.parse().ok(),
    }
}

/// Addresses of a host and a service, which is a port number or `http`.
pub fn lookup(host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
    let port = port(service).ok_or_else(|| format!("unknown service: {service}"))?;
    (host, port).to_socket_addrs().map(Iterator::collect).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_scripts_see() {
        let target = Target::parse("http://127.0.0.1:8099/v0/entity?id=a").unwrap();
        assert_eq!((target.host.as_str(), target.port.as_deref()), ("127.0.0.1", Some("8099")));
        assert_eq!(target.path, "/v0/entity?id=a");
        let bare = Target::parse("http://example.org").unwrap();
        assert_eq!((bare.path.as_str(), bare.port.as_deref(), bare.service()), ("/", None, "http"));
        assert_eq!(Target::parse("http://[::1]:80/").unwrap().host, "::1");
    }

    #[test]
    fn a_server_is_the_same_however_its_name_and_its_port_are_written() {
        let is_same = |one: &str, other: &str| {
            Target::parse(one).unwrap().is_same_server(&Target::parse(other).unwrap())
        };
        for (one, other, same) in [
            ("http://h/a", "http://h:80/b", true),
            ("https://h:443/", "HTTPS://H/", true),
            ("http://Some.Where:8080/", "http://some.where:8080/", true),
            ("http://h/", "https://h/", false),
            ("http://h/", "http://h:8080/", false),
            ("http://h/", "http://other/", false),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_reached_is_told_from_its_port() {
        for (url, told) in [
            ("http://[::1]:81/", "unable to connect to [::1]:81 why"),
            ("http://[::1]/", "unable to connect to [::1]:http why"),
            ("http://127.0.0.1:81/", "unable to connect to 127.0.0.1:81 why"),
        ] {
            assert_eq!(Target::parse(url).unwrap().unreachable("why").to_string(), told);
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        for (url, part) in [
            ("ftp://h/", "scheme must be http or https"),
            ("/path", "--unix-socket PATH"),
            ("unix:/run/s", "--unix-socket PATH"),
            ("unix:///run/s", "--unix-socket PATH"),
            ("localhost:8080/", "no scheme"),
            ("http://user@h/", "user names"),
            ("http://h:port/", "port is not a number"),
            ("http://h:99999/", "port is not a number"),
            ("http://::1:8080/a", "an IPv6 address stands in brackets"),
            ("http://[::1/", "invalid authority"),
        ] {
            let message = Target::parse(url).unwrap_err().to_string();
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}
