//! Where the connections of a thread have really been open, which need not be where they were to begin.

use std::collections::BTreeMap;

use crate::alternation::Server;
use crate::endpoint::Endpoints;

/// Of each endpoint of each server how many connections have been open there. A connection that moves on to
/// another endpoint counts at both.
#[derive(Debug)]
pub struct Reached([Vec<u64>; 2]);

impl Reached {
    pub fn new(endpoints: &[Endpoints; 2]) -> Self {
        Self([0, 1].map(|server: Server| vec![0; endpoints[server].len()]))
    }

    pub fn count(&mut self, server: Server, endpoint: usize) {
        self.0[server][endpoint] += 1;
    }

    /// Without those where none has been open.
    pub fn by_name(&self, endpoints: &[Endpoints; 2]) -> BTreeMap<String, u64> {
        let mut names = BTreeMap::<String, u64>::new();
        for (endpoints, counts) in endpoints.iter().zip(&self.0) {
            for (endpoint, count) in endpoints.iter().zip(counts).filter(|(_, count)| **count > 0) {
                *names.entry(endpoint.to_string()).or_default() += count;
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    #[test]
    fn one_endpoint_of_two_servers_is_counted_together_and_one_that_was_never_open_is_not_named() {
        let at = |ports: &[u16]| -> Endpoints {
            ports.iter().map(|port| Endpoint::Tcp(([127, 0, 0, 1], *port).into())).collect()
        };
        let endpoints = [at(&[80, 81]), at(&[80])];
        let mut reached = Reached::new(&endpoints);
        for (server, endpoint) in [(0, 0), (0, 0), (1, 0)] {
            reached.count(server, endpoint);
        }
        assert_eq!(reached.by_name(&endpoints), [("127.0.0.1:80".to_owned(), 3)].into());
    }
}
