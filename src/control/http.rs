//! HTTP for machines and people: metrics, health, the numbers as JSON, a live page. Read-only.
//!
//! hyper parses; everything is bounded: connections at once, bytes of a header, time. One request a connection:
//! scrapers come every few seconds, and idle connections would take the places of others.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;
use tracing::debug;

use super::exposition::{Format, exposition};
use super::hot_keys;
use super::page::{PAGE, POLICY, live};
use super::report::{Current, Sources};
use super::visitors::{Door, Visitor, welcome};
use crate::worker::Order;

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;

/// Longest that one connection may take, from its acceptance to the last byte of the answer.
const CONNECTION_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of a request's head; more is answered with 431.
const HEAD_BYTES: usize = 16 << 10;

/// A worker whose event loop hasn't come around for so long does not live. It does once a second when nothing happens.
const LATELY: Duration = Duration::from_secs(10);

/// An answer: status, content type, body.
type Answer = (StatusCode, &'static str, Vec<u8>);

const TEXT: &str = "text/plain; charset=utf-8";

/// Serves until it is dropped. Inside a `LocalRuntime` only.
pub async fn serve(door: Door, sources: Current, workers: Vec<UnboundedSender<Order>>) {
    let workers: Rc<[_]> = workers.into();
    welcome(door, CONNECTIONS, "metrics", move |visitor| {
        answer(visitor, sources.clone(), Rc::clone(&workers))
    })
    .await;
}

async fn answer(visitor: Visitor, sources: Current, workers: Rc<[UnboundedSender<Order>]>) {
    let Visitor { stream, address } = visitor;
    let service = service_fn(move |request| {
        let (sources, workers) = (sources.now(), Rc::clone(&workers));
        async move {
            let keys = match request.uri().path() {
                "/live" => hot_keys::on_page(&workers, &sources).await,
                _ => Value::Null,
            };
            Ok::<_, Infallible>(respond(&request, &sources, keys))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_LIMIT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_LIMIT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(address, %error, "an HTTP connection failed"),
        Err(_) => debug!(address, "an HTTP connection took too long"),
    }
}

fn respond(request: &Request<Incoming>, sources: &Sources, keys: Value) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = response((StatusCode::METHOD_NOT_ALLOWED, TEXT, b"GET and HEAD only\n".to_vec()));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    response(match request.uri().path() {
        "/metrics" => metrics(request, sources),
        "/livez" => livez(sources),
        "/readyz" => readyz(sources),
        "/" => (StatusCode::OK, "text/html; charset=utf-8", PAGE.as_bytes().to_vec()),
        "/live" => (StatusCode::OK, "application/json", live(sources, keys).to_string().into_bytes()),
        "/stats" => (StatusCode::OK, "application/json", sources.render()),
        _ => {
            let paths = b"not found; there are / /metrics /livez /readyz /stats\n".to_vec();
            (StatusCode::NOT_FOUND, TEXT, paths)
        }
    })
}

fn response((status, content_type, body): Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn metrics(request: &Request<Incoming>, sources: &Sources) -> Answer {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::of_accept(accept);
    (StatusCode::OK, format.content_type(), exposition(sources, format).into_bytes())
}

/// Whether the process must be started anew: a worker's loop stands still.
fn livez(sources: &Sources) -> Answer {
    let still = standing_still(sources, SystemTime::now());
    if still.is_empty() {
        return (StatusCode::OK, TEXT, b"ok\n".to_vec());
    }
    let list = still.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let text = format!("no turn of the event loop for {} s: worker {list}\n", LATELY.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, TEXT, text.into_bytes())
}

/// Whether new clients should come here. Servers that are down are no reason why not: another proxy would not reach
/// them either.
fn readyz(sources: &Sources) -> Answer {
    if sources.draining.get() {
        return (StatusCode::SERVICE_UNAVAILABLE, TEXT, b"draining: the process is going down\n".to_vec());
    }
    livez(sources)
}

/// Workers whose loop hasn't come around lately. One that hasn't begun yet is given the time as well.
fn standing_still(sources: &Sources, now: SystemTime) -> Vec<usize> {
    let seen = |micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
    let workers = sources.workers.iter().enumerate();
    let still = workers.filter(|(_, worker)| {
        let last = seen(worker.own.loop_seen_at.value()).max(sources.started_at);
        // A clock that was set back is no standstill.
        now.duration_since(last).is_ok_and(|age| age > LATELY)
    });
    still.map(|(index, _)| index).collect()
}
