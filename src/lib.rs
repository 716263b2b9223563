//! shardwise: a Redis sharding proxy. Clients speak to it as if it were one Redis; it sends every key to the server that
//! owns it, over a few connections that all clients of a worker share.
//!
//! The path of one request, by the letters that `docs/ARCHITECTURE.md` uses too:
//!
//! ```text
//!   client socket                                                      server socket
//!        │                                                                   ▲
//!   (a) worker     accepts the client, gives it a task                       │
//!   (b) client     one read into the worker's scratch buffer                 │
//!   (c) resp       where the request ends, where its arguments lie           │
//!   (d) command    its row in the table, its keys                            │
//!   (e) client     may it do that now, does the proxy answer it itself       │
//!   (f) router     a Plan: one server, a split, or a refusal  ◀── topology   │
//!   (g) dispatch   one ticket for each part                                  │
//!   (h) backend    appended to a connection's bytes, awaited in its FIFO ────┘  (k) one write, end of turn
//!                                                                            │
//!   client socket ◀── (k) one write, end of turn                             ▼
//!        ▲─────────── (i) exchange: into its slot, in order ◀── (j) dispatch: parts become one reply
//! ```
//!
//! A module imports only from modules below it; `tests/layers.rs` holds the table:
//! `resp hash units stats` · `command net` · `config` · `topology exchange` · `router` · `backend` · `dispatch` ·
//! `client` · `worker` · `control` · `app`. Beside the path of a request, on `resp net units`: `load`.
#![forbid(unsafe_code)]

pub mod app;
pub mod backend;
pub mod client;
pub mod command;
pub mod config;
pub mod control;
pub mod dispatch;
pub mod exchange;
pub mod hash;
pub mod load;
pub mod net;
pub mod resp;
pub mod router;
pub mod stats;
pub mod topology;
pub mod units;
pub mod worker;
