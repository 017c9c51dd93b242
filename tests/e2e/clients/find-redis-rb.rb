# redis-rb in its Sentinel mode: holds a lock and says at which broker. usage: ruby find-redis-rb.rb NAME PORT PORT
require "redis"

name, *ports = ARGV
$stdout.sync = true
client = Redis.new(url: "redis://holdfast", name: "holdfast", role: :master, timeout: 1,
                   sentinels: ports.map { |port| { host: "127.0.0.1", port: port.to_i } })
client.call("LOCK", name, "OWNER", "app", "LEASE", 30000)
loop do
  begin
    client.call("RENEW", name, "OWNER", "app", "LEASE", 30000)
    puts client.call("CONFIG", "GET", "announce").then { |reply| reply.is_a?(Hash) ? reply["announce"] : reply[1] }
  rescue Redis::BaseError, SystemCallError
    # no reply, or none that is good, yet
  end
  sleep 0.1
end
