// rslock, as its users write: what it says, on whatever server it is pointed at. usage: locks rslock PORT
use rslock::{LockError, LockManager};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn kind<T>(outcome: &Result<T, LockError>) -> &'static str {
    match outcome {
        Ok(_) => "fine",
        Err(LockError::Unavailable) => "unavailable",
        Err(LockError::RedisKeyNotFound) => "no key",
        Err(LockError::RedisKeyMismatch) => "another one's",
        Err(_) => "another error",
    }
}

async fn work(uri: String, state: Arc<[AtomicUsize; 3]>) {
    let mut manager = LockManager::new(vec![uri]);
    manager.set_retry(1, Duration::from_millis(10));
    for _ in 0..5 {
        let lock = manager.acquire_no_guard(b"rslock:many", LONG).await.unwrap();
        let inside = state[0].fetch_add(1, SeqCst) + 1;
        state[1].fetch_max(inside, SeqCst);
        let seen = state[2].load(SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        state[2].store(seen + 1, SeqCst);
        state[0].fetch_sub(1, SeqCst);
        manager.unlock(&lock).await;
    }
}

#[tokio::main]
async fn main() {
    let uri = format!("redis://127.0.0.1:{}/", std::env::args().nth(2).unwrap());
    let mut first = LockManager::new(vec![uri.clone()]);
    let mut second = LockManager::new(vec![uri.clone()]);
    for manager in [&mut first, &mut second] {
        manager.set_retry(1, Duration::from_millis(20));
    }
    let lock = first.lock(b"rslock", LONG).await.unwrap();
    println!("take: {}", lock.validity_time > 20000);
    println!("refused: {}", kind(&second.lock(b"rslock", LONG).await));
    println!("freed: {}", kind(&second.is_freed(&lock).await));
    println!("extend: {}", kind(&first.extend(&lock, Duration::from_secs(20)).await));
    first.unlock(&lock).await;
    println!("freed: {}", kind(&second.is_freed(&lock).await));
    let other = second.lock(b"rslock", LONG).await;
    println!("the other one: {}", kind(&other));
    first.unlock(&lock).await;
    println!("still its: {}", kind(&second.is_freed(&other.unwrap()).await));
    let short = first.lock(b"rslock:short", Duration::from_millis(300)).await.unwrap();
    let begun = Instant::now();
    let later = second.acquire_no_guard(b"rslock:short", LONG).await.unwrap();
    println!("after its end: {}", begun.elapsed() < Duration::from_secs(20));
    first.unlock(&short).await;
    println!("extend by anybody: {}", kind(&first.extend(&later, LONG).await));
    let state: Arc<[AtomicUsize; 3]> = Arc::default();
    let workers: Vec<_> = (0..3).map(|_| tokio::spawn(work(uri.clone(), state.clone()))).collect();
    for worker in workers {
        worker.await.unwrap();
    }
    println!("contenders: {} rounds, {} at once", state[2].load(SeqCst), state[1].load(SeqCst));
    println!("done");
}
