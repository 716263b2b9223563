<?php
// What every script here compares by.
declare(strict_types=1);

function same(mixed $found, mixed $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception('found ' . substr(var_export($found, true), 0, 300) . ', wanted ' . substr(var_export($wanted, true), 0, 300));
    }
}
