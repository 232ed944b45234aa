"""How large what a function of Trino returns can be, by kinds: every function that a statement may call is in one of them.

Sources: the pages "Functions and operators" of Trino's manual.
"""

from __future__ import annotations

from agentkernel_kb.guard.trino_functions import TRINO_FUNCTIONS, TRINO_TABLE_FUNCTIONS

# A number, a truth, a moment, a hash: a few bytes whatever the arguments are.
_SMALL = """
all any some approx_distinct avg bitwise_and_agg bitwise_or_agg bitwise_xor_agg bool_and bool_or checksum corr count count_if
covar_pop covar_samp entropy every geometric_mean kurtosis regr_intercept regr_slope skewness stddev stddev_pop stddev_samp sum
var_pop var_samp variance cume_dist dense_rank ntile percent_rank rank row_number classifier match_number all_match any_match
array_position arrays_overlap cardinality contains cosine_distance cosine_similarity dot_product euclidean_distance none_match
crc32 from_big_endian_32 from_big_endian_64 from_ieee754_32 from_ieee754_64 hmac_md5 hmac_sha1 hmac_sha256 hmac_sha512 md5
murmur3 sha1 sha256 sha512 spooky_hash_v2_32 spooky_hash_v2_64 to_big_endian_32 to_big_endian_64 to_ieee754_32 to_ieee754_64
xxhash64 bit_count bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_right_shift_arithmetic
bitwise_xor grouping format_number parse_data_size is_json_scalar at_timezone current_date current_time current_timestamp
current_timezone date date_add date_diff date_parse date_trunc day day_of_month day_of_week day_of_year dow doy extract
from_iso8601_date from_iso8601_timestamp from_iso8601_timestamp_nanos from_unixtime from_unixtime_nanos hour
human_readable_seconds last_day_of_month localtime localtimestamp millisecond minute month now parse_datetime parse_duration
quarter second timezone timezone_hour timezone_minute to_iso8601 to_milliseconds to_unixtime week week_of_year with_timezone
year year_of_week yow json_array_contains json_array_length json_size abs acos asin atan atan2 beta_cdf cbrt ceil
ceiling cos cosh degrees e exp floor from_base infinity inverse_beta_cdf inverse_normal_cdf is_finite is_infinite is_nan ln log
log10 log2 mod nan normal_cdf pi pow power radians rand random round sign sin sinh sqrt t_cdf t_pdf tan tanh to_base truncate
width_bucket wilson_interval_lower wilson_interval_upper chr codepoint hamming_distance length luhn_check regexp_count
regexp_like regexp_position soundex starts_with uuid url_extract_port intersection_cardinality jaccard_index quantile_at_value
value_at_quantile color rgb great_circle_distance line_locate_point st_area st_contains st_coorddim st_crosses st_dimension
st_disjoint st_distance st_equals st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_length
st_numgeometries st_numinteriorring st_numpoints st_overlaps st_point st_relate st_touches st_within st_x st_xmax st_xmin st_y
st_ymax st_ymin bing_tile bing_tile_at bing_tile_coordinates bing_tile_quadkey bing_tile_zoom_level
"""
# One of the arguments, or a part of one.
_ONE = """
any_value arbitrary approx_percentile max max_by min min_by first_value lag last_value lead nth_value first last next prev
coalesce greatest least if nullif try array_remove array_sort array_distinct array_except array_intersect filter reverse
shuffle slice trim_array map_filter substr substring ltrim rtrim trim regexp_extract split_part word_stem json_extract
json_extract_scalar json_array_get url_extract_fragment url_extract_host url_extract_parameter url_extract_path
url_extract_protocol url_extract_query lower upper to_utf8 from_hex from_base32 from_base64 from_base64url json_format
"""
_ELEMENT = "array_first array_last array_max array_min element_at"
# All of the arguments together, and not much more.
_ALL = """
row array_union concat zip map map_concat map_entries map_from_entries map_keys map_values multimap_from_entries render
hash_counts qdigest_values values_at_quantiles tdigest_values array_histogram
"""
# So many times as much as all of the arguments.
_TIMES = {
    "from_utf8": 3,
    "json_array": 3,
    "json_object": 3,
    "json_parse": 2,
    "normalize": 11,
    "to_base32": 2,
    "to_base64": 2,
    "to_base64url": 2,
    "to_hex": 2,
    "translate": 4,
    "typeof": 4,
    "url_decode": 3,
    "url_encode": 3,
    "date_format": 12,
    "format_datetime": 12,
    "st_buffer": 20,
}
_GEOMETRY = """
bing_tile_polygon convex_hull_agg geometry_from_hadoop_shape geometry_invalid_reason geometry_nearest_points geometry_union
line_interpolate_point simplify_geometry st_asbinary st_astext st_boundary st_centroid st_convexhull st_difference st_endpoint
st_envelope st_envelopeaspts st_exteriorring st_geometries st_geometryfromtext st_geometryn st_geometrytype st_geomfrombinary
st_interiorringn st_interiorrings st_intersection st_linefromtext st_linestring st_multipoint st_pointn st_points st_polygon
st_startpoint st_symdifference st_union to_geometry to_spherical_geography
"""
# What aggregates gather is bounded by the server's memory for a query.
_GATHERED = """
array_agg geometry_union_agg histogram map_agg map_union multimap_agg
"""
_SKETCHED = "approx_set empty_approx_set listagg make_set_digest merge merge_set_digest qdigest_agg tdigest_agg"
_PIECES = "split regexp_split regexp_extract_all split_to_map split_to_multimap"
_COMPARED = "contains_sequence levenshtein_distance position strpos"
_OWN = """
approx_most_frequent array_join bar bing_tiles_around combinations concat_ws flatten format geometry_to_bing_tiles
json_exists json_query json_table json_value lpad map_zip_with ngrams numeric_histogram reduce reduce_agg regexp_replace
repeat replace rpad sequence transform transform_keys transform_values zip_with
"""

SMALL, ONE, ELEMENT, ALL, GATHERED, SKETCHED, PIECES, COMPARED, OWN = (
    frozenset(words.split()) for words in (_SMALL, _ONE, _ELEMENT, _ALL, _GATHERED, _SKETCHED, _PIECES, _COMPARED, _OWN)
)
TIMES = {**_TIMES, **dict.fromkeys(_GEOMETRY.split(), 4)}
SOUGHT = COMPARED | frozenset(["replace", "split", "split_part", "split_to_map", "split_to_multimap", "trim", "ltrim", "rtrim"])
"""Functions whose time grows with the product of the sizes of two arguments."""

_CROSSED = """
geometry_nearest_points st_contains st_crosses st_difference st_disjoint st_distance st_equals st_intersection st_intersects
st_overlaps st_relate st_symdifference st_touches st_union st_within
"""
CROSSED = frozenset(_CROSSED.split())
"""Functions whose time grows with the product of the corners of two geometries: 1,400 by 1,400 took more than ten seconds."""

_UNREAD = """
array_first array_last cardinality coalesce element_at first first_value if lag last last_value lead next nth_value prev row
try typeof
"""
UNREAD = GATHERED | SKETCHED | frozenset(_UNREAD.split())
"""Functions that do not go through their arguments: what they take is there at once, whatever its size."""

SORTED = frozenset(["array_distinct", "array_sort", "shuffle"])

COUNTED = {"approx_most_frequent": (0, 2), "max": (1,), "max_by": (2,), "min": (1,), "min_by": (2,), "numeric_histogram": (0,)}
"""Aggregates that keep as many values as an argument says, by the places of these arguments."""

SIZED_NAMES = TRINO_FUNCTIONS | TRINO_TABLE_FUNCTIONS
