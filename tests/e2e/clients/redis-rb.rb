# redis-rb with its defaults: one session of locking. usage: ruby redis-rb.rb PORT
require 'redis'

def must(what, is, wanted = true)
  raise "#{what}: #{is.inspect}, not #{wanted.inspect}" unless wanted === is
end

def refused(pattern)
  yield
rescue Redis::CommandError => e
  must('the error', e.message, pattern)
else
  raise "no error like #{pattern}"
end

holder, rival = Array.new(2) { Redis.new(port: Integer(ARGV[0])) }

# held by another, and given back
token, validity = holder.call('LOCK', 'rb')
must 'a grant', token > 0 && validity > 0
must 'what is held by another', rival.call('LOCK', 'rb'), nil
refused(/\AHELD 'rb' is held by this connection already/) { holder.call('LOCK', 'rb') }
must 'UNLOCK', holder.call('UNLOCK', 'rb'), 1
refused(/\ANOTHELD/) { holder.call('UNLOCK', 'rb') }

# entered again by name, and sent again
2.times { must 'entered', holder.call('LOCK', 'rb:again', 'OWNER', 'app')[0] > 0 }
2.times { must 'sent', holder.call('LOCK', 'rb:again', 'OWNER', 'app', 'ID', '3')[0] > 0 }
must 'HOLDS', rival.call('HOLDS', 'rb:again', 'OWNER', 'app'), 3

# lost: nothing comes that was not asked for
holder.call('LOCK', 'rb:lost')
must 'FORCEUNLOCK', rival.call('FORCEUNLOCK', 'rb:lost'), 1
must 'the next one', rival.call('LOCK', 'rb:lost', 'WAIT', 5000)[0] > 0
must 'what was lost', holder.call('LOCK', 'rb:lost'), nil
must 'an echo', holder.echo('x'), 'x'
must 'HOLDS', rival.call('HOLDS', 'rb:again', 'OWNER', 'app'), 3

# a transaction: nothing of it is run
refused(/EXECABORT|NOMULTI 'lock' was not run/) { holder.multi { |m| m.call('LOCK', 'rb:multi') } }
must 'what was in it', rival.call('LOCK', 'rb:multi')[0] > 0
must 'an echo', holder.echo('y'), 'y'

[holder, rival].each(&:close)
puts 'ok'
