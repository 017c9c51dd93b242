#ifndef SCRIPT
#error "who includes this says what SCRIPT(ID, file, fields...) makes of a row"
#endif
/*
 * script_rows: one row a script of src/redis/lua: its number SCRIPT_<ID>, its file, and the fields
 * of struct script_row that are not 0.
 */
SCRIPT(ACQUIRE, acquire, .items_max = ITEMS, .args = 2, .width = 3, .code_min = ACQUIRE_ALL_NEEDED,
       .code_max = ACQUIRE_OTHER_PERMIT, .deadline = true, .gives_token = true, .floors = true,
       .brief = true)
SCRIPT(EXCHANGE, exchange, .items_max = ITEMS, .args = 2, .width = 3, .code_min = EXCHANGE_PLAIN,
       .code_max = EXCHANGE_DONE, .deadline = true, .gives_token = true, .floors = true,
       .texts = true, .brief = true)
SCRIPT(COMMIT, commit, .items_max = ITEMS, .args = 4, .width = 2, .code_min = COMMIT_MISSING,
       .code_max = COMMIT_LARGER, .deadline = true, .gives_token = true)
SCRIPT(TAKEOVER, takeover, .items_max = ITEMS, .args = 7, .width = 8, .code_min = TAKEOVER_GONE,
       .code_max = TAKEOVER_TAKEN, .deadline = true, .gives_token = true)
SCRIPT(RENEW, renew, .items_max = ITEMS_LIGHT, .args = 2, .width = 1, .code_min = RENEW_FORGOTTEN,
       .code_max = RENEW_PLANTED, .deadline = true, .brief = true)
SCRIPT(PLANT, plant, .items_max = ITEMS, .args = 9, .width = 1, .code_min = PLANT_REFUSED,
       .code_max = PLANT_THERE, .deadline = true)
SCRIPT(REPLANT, replant, .items_max = ITEMS, .args = 9, .width = 1, .code_min = REPLANT_REFUSED,
       .code_max = REPLANT_NONE, .deadline = true)
SCRIPT(RELEASE, release, .items_max = ITEMS_LIGHT, .args = 1, .width = 2, .code_min = RELEASE_OTHER,
       .code_max = RELEASE_ENDED, .any_counts = true, .brief = true)
SCRIPT(LINE, line, .items_max = ITEMS, .args = 1, .width = 1, .code_max = INT32_MAX)
SCRIPT(PASS, pass, .items_max = ITEMS, .args = 2, .width = 1, .code_min = PASS_HELD,
       .code_max = PASS_FREE)
SCRIPT(PEEK, peek, .items_max = ITEMS, .args = 1, .any_counts = true)
SCRIPT(JOIN, join, .items_max = 0)
SCRIPT(ACTIVATE, activate, .items_max = 0)
SCRIPT(SUSPEND, suspend, .items_max = 0)
SCRIPT(ROLL, roll, .items_max = 0)
#undef SCRIPT
